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
		select min(message_seq) from dispatcher.attempts where settled_at < now() - interval '1 minute'
		  and claimed_at > now() - interval '1 minute' and outcome = 'accepted')`)
	claimAll(t, l, batch("open", 2), "b")
	store(t, db, "id, lane, state, next_at, received_at", `select 'w' || n, 'bulk', 'waiting',
		now() + interval '1 hour', now() - n * interval '1 minute' from generate_series(1, 3) n`)
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
		Queues: []ledger.Queue{{"bulk", 3, got.Queues[0].Received, 0, 1}, {"otp", 0, nil, 1, 0}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, err = l.Reports.Recent(t.Context(), 5*time.Minute, 2)
	if err != nil || len(got.Carried) > 0 || len(got.Outcomes) != len(want.Outcomes) {
		t.Errorf("under version 2: %+v, %v", got, err)
	}
	if age := got.Now.Sub(*got.Queues[0].Received); age < time.Minute || age > time.Hour {
		t.Errorf("the oldest waits for %s", age)
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
