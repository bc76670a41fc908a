package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

func TestRecentTellsWhatChannelsDidAndWhatWaits(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"}, ledger.ChannelSpec{Name: "b"})
	answers(t, l, "old", "a", provider.Accepted, "", provider.Rejected, "old")
	execute(t, db, `update dispatcher.messages set received_at = received_at - interval '1 hour'`)
	execute(t, db, `update dispatcher.attempts set claimed_at = claimed_at - interval '1 hour'`)
	answers(t, l, "a", "a", provider.Accepted, "", provider.Accepted, "", provider.Rejected, "11",
		provider.Rejected, "11", provider.Unknown, "timeout")
	answers(t, l, "b", "b", provider.Accepted, "")
	execute(t, db, `update dispatcher.attempts set settled_at = now() - interval '2 minutes'
		where claimed_at > now() - interval '1 minute' and channel = 'a'`)
	execute(t, db, `update dispatcher.attempts set receipt_state = 'undelivered' where message_seq = (
		select min(message_seq) from dispatcher.all_attempts where settled_at < now() - interval '1 minute'
		  and claimed_at > now() - interval '1 minute' and outcome = 'accepted')`)
	claimAll(t, l, batch("open", 2), "b")
	store(t, db, "id, lane, state, next_at, received_at", `select 'w' || n, 'bulk', 'waiting',
		now() + interval '1 hour', now() - n * interval '1 minute' from generate_series(1, 3) n`)
	store(t, db, "id, lane, state, reason, waits_for, next_at, received_at", `select 'o' || n, 'otp',
		'waiting', 'no_slot', 'a 1s messages', now() + interval '1 hour',
		now() - n * interval '1 minute' from generate_series(4, 5) n`)
	store(t, db, "id, lane, state, next_at", `select 's', 'otp', 'scheduled',
		now() + interval '1 hour'`)
	store(t, db, "id, lane, state, reason, next_at", `select 'p', 'bulk', 'waiting', 'paused',
		now() + interval '1 hour'`)
	store(t, db, "id, lane, state, finished_at, detail, received_at", `select 'd' || n, 'otp',
		'dead', now(), 'no JSON', now() - n * interval '20 hours' from generate_series(0, 2) n`)
	got, err := l.Reports.Recent(t.Context(), 5*time.Minute, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := ledger.Recent{
		Now: got.Now, Since: got.Now.Add(-5 * time.Minute), Dead: 2, Ambiguous: got.Ambiguous,
		Carried: []ledger.RecentCarried{{"default", "a", 2}, {"default", "b", 1}},
		Outcomes: []ledger.RecentOutcome{
			{"a", "accepted", "", 2, 2, 1},
			{"a", "rejected", "11", 2, 0, 0},
			{"a", "unknown", "timeout", 1, 0, 0},
			{"b", "", "", 2, 0, 0},
			{"b", "accepted", "", 1, 0, 0},
		},
		Queues: []ledger.Queue{{"bulk", 3, got.Queues[0].Since, 0, 1}, {"otp", 2, got.Queues[1].Since, 1, 0}},
		Oldest: []ledger.Oldest{
			{"", "", *got.Queues[0].Since},
			{"", "paused", got.Oldest[1].Since},
			{"a 1s messages", "no_slot", got.Oldest[2].Since},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if age := got.Now.Sub(got.Oldest[2].Since); age < 4*time.Minute || age > time.Hour {
		t.Errorf("the oldest of a waits for %s, want four minutes or more", age)
	}
	got, err = l.Reports.Recent(t.Context(), 5*time.Minute, 2)
	if err != nil || len(got.Carried) > 0 || len(got.Outcomes) != len(want.Outcomes) {
		t.Errorf("under version 2: %+v, %v", got, err)
	}
	if age := got.Now.Sub(*got.Queues[0].Since); age < time.Minute || age > time.Hour {
		t.Errorf("the oldest waits for %s", age)
	}
}

// TestAScheduledMessageWaitsSinceItsTime, and not since its receipt: also after it was refused and
// is tried again. The message of a lane that has waited longest counts.
func TestAScheduledMessageWaitsSinceItsTime(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	messages := batch("s", 2)
	for i := range messages {
		messages[i].State, messages[i].NextAt = ledger.Scheduled, at
	}
	err := runClaim(t.Context(), l, ledger.Claim{Messages: messages},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			return ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	var stored int
	if err := db.QueryRow(t.Context(), `select count(*) from dispatcher.messages m
		join dispatcher.due d using (seq) where m.send_at = $1 and d.send_at = $1`,
		at).Scan(&stored); err != nil || stored != 2 {
		t.Fatalf("%d have a send_at, error %v", stored, err)
	}
	waits := func() time.Duration {
		t.Helper()
		got, err := l.Reports.Recent(t.Context(), time.Minute, 1)
		if err != nil || len(got.Queues) != 1 {
			t.Fatalf("got %+v, error %v", got.Queues, err)
		}
		if got.Queues[0].Since == nil {
			return -1
		}
		return got.Now.Sub(*got.Queues[0].Since).Round(time.Minute)
	}
	if got := waits(); got != -1 {
		t.Errorf("before its time it waits for %s", got)
	}
	// Two hours later: it came due a minute ago, and waits.
	execute(t, db, `update dispatcher.messages set received_at = received_at - interval '2 hours',
		send_at = now() - interval '1 minute', state = 'waiting', next_at = now()`)
	execute(t, db, `update dispatcher.due set send_at = (select m.send_at from dispatcher.messages m
		where m.seq = due.seq)`)
	if got := waits(); got != time.Minute {
		t.Errorf("it waits for %s, want a minute", got)
	}
	// It leaves, and comes back.
	execute(t, db, `update dispatcher.messages set state = 'sending', next_at = null, attempts = 1`)
	execute(t, db, `update dispatcher.messages set state = 'retry', next_at = now()`)
	if got := waits(); got != time.Minute {
		t.Errorf("after a refusal it waits for %s, want a minute", got)
	}
	store(t, db, "id, lane, state, next_at, received_at", `select 'w', m.lane, 'waiting', now(),
		now() - interval '10 minutes' from dispatcher.messages m limit 1`)
	if got := waits(); got != 10*time.Minute {
		t.Errorf("beside an older one it waits for %s, want ten minutes", got)
	}
}

func TestInstancesTellHowTheyAre(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l, other, db := connect(t, ledger.Config{URL: url}), connect(t, ledger.Config{URL: url}),
		raw(t, url)
	state := ledger.InstanceState{
		Version: 3,
		Channels: map[string]ledger.InstanceChannel{
			"a": {
				Why: "breaker_open", Breaker: "open", BreakerSince: new(time.Unix(7, 0).UTC()),
				Silent: true, Unanswered: 4, Answers: map[int64]int64{1000: 7, 1200: 1},
			},
		},
		Lanes: map[string]ledger.InstanceLane{"otp": {Joined: true, Paused: true, Lag: new(int64(5))}},
	}
	if _, err := l.Instances.Gather(t.Context(), nil, &state, time.Minute); err != nil {
		t.Fatal(err)
	}
	all, now, err := other.Instances.List(t.Context(), time.Minute)
	if err != nil || len(all) != 2 || now.Sub(all[0].LastSeen) > time.Minute ||
		all[1].State.Version != 0 {
		t.Fatalf("%+v at %s, %v", all, now, err)
	}
	if diff := cmp.Diff(state, all[0].State); diff != "" {
		t.Error(diff)
	}
	execute(t, db, `update dispatcher.instances set last_seen = now() - interval '1 hour'
		where id = $1`, l.Instances.ID())
	if all, _, err := other.Instances.List(t.Context(), time.Minute); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v: one of them is dead", all, err)
	}
}
