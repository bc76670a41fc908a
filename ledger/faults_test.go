package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// unfitSender is the code of refusals that are about the one message.
const unfitSender = "unfit_sender"

// answers settles one attempt on the channel for each outcome, each followed by its code.
func answers(t testing.TB, l *ledger.Ledger, prefix, channel string, outcomes ...any) {
	t.Helper()
	settlements := accepted(claimAll(t, l, batch(prefix, len(outcomes)/2), channel).Messages)
	for i := range settlements {
		s := &settlements[i]
		s.Outcome, s.Code, s.Notice = outcomes[2*i].(provider.Outcome), outcomes[2*i+1].(string),
			nil
		s.Unfit = s.Code == unfitSender
		switch s.Outcome {
		case provider.Accepted:
		case provider.Rejected:
			s.State = ledger.Rejected
		case provider.Unknown:
			s.State = ledger.Unknown
		case provider.Refused, provider.Throttled:
			s.State = ledger.Retry
		}
	}
	settleAll(t, l, settlements)
}

func TestFaultsCountsWhatIsTheChannelsFaultWithinTheWindow(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"}, ledger.ChannelSpec{Name: "b"}, ledger.ChannelSpec{
		Name: "c",
	})
	age := func(sql string) {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	answers(t, l, "old", "a", provider.Refused, "503", provider.Refused, "503")
	age(`update dispatcher.attempts
		set claimed_at = claimed_at - interval '1 hour',
		  settled_at = settled_at - interval '1 hour'`)
	answers(t, l, "late", "a", provider.Unknown, "timeout", provider.Unknown, "timeout",
		provider.Unknown, "timeout")
	age(`update dispatcher.attempts set claimed_at = claimed_at - interval '20 minutes'
		where settled_at > now() - interval '1 minute'`)
	// claimed before the window, settled in it
	answers(t, l, "before", "a", provider.Refused, "503")
	age(`update dispatcher.attempts set claimed_at = now() - interval '630 seconds'
		where claimed_at > now() - interval '1 minute'`)
	answers(t, l, "now", "a",
		provider.Accepted, "", provider.Rejected, "bad_number", provider.Throttled, "429",
		provider.Refused, "", provider.Unknown, "timeout",
		provider.Refused, "stopping", provider.Refused, "stale", provider.Refused, "expired",
		provider.Refused, "uncomposed", provider.Unknown, "instance_lost",
		// the latter repeated a submission that nobody had answered
		provider.Refused, unfitSender, provider.Unknown, unfitSender)
	answers(t, l, "good", "b", provider.Accepted, "")
	answers(t, l, "unfit", "b", provider.Refused, unfitSender, provider.Refused, unfitSender,
		provider.Refused, unfitSender)
	claimAll(t, l, batch("pending", 2), "c")
	got, err := l.Reports.Faults(t.Context(), 10*time.Minute, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.Fault{{Channel: "a", Attempts: 13, Errors: 3}, {Channel: "b", Attempts: 4}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if got, err := l.Reports.Faults(t.Context(), 10*time.Minute, 11*time.Minute); err != nil ||
		got[0].Attempts != 16 || got[0].Errors != 6 {
		// those of "late"
		t.Errorf("with answers that came up to 11 minutes after the claim: %+v, %v", got, err)
	}
}

func TestTimelyCountsWhatHadItsTimeAndIsNotTheRecipientsFault(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"}, ledger.ChannelSpec{Name: "b"},
		ledger.ChannelSpec{Name: "mute"}, ledger.ChannelSpec{Name: "none"})
	// since is when the provider answered; after, when the receipt came, none for ''.
	book := func(prefix, since, after, state, cause string, n int) {
		t.Helper()
		answers(t, l, prefix, "a", slices.Repeat([]any{provider.Accepted, ""}, n)...)
		execute(t, db, fmt.Sprintf(`update dispatcher.attempts a set
			claimed_at = now() - interval '%[2]s', settled_at = now() - interval '%[2]s',
			receipt_at = now() - interval '%[2]s' + nullif('%[3]s', '')::interval,
			receipt_state = nullif('%[4]s', ''), receipt_cause = nullif('%[5]s', ''),
			delivered_at = case when '%[4]s' = 'delivered'
			  then now() - interval '%[2]s' + nullif('%[3]s', '')::interval end
			from dispatcher.messages m where m.seq = a.message_seq and m.id like '%[1]s%%'`,
			prefix, since, after, state, cause))
	}
	book("young-", "1 minute", "1 second", "delivered", "", 1)
	book("old-", "750 seconds", "1 second", "delivered", "", 1)
	book("soon-", "5 minutes", "1 second", "delivered", "", 5)
	book("early-", "5 minutes", "-1 second", "delivered", "", 1)
	book("slow-", "5 minutes", "3 minutes", "delivered", "", 2)
	book("open-", "5 minutes", "", "", "", 3)
	book("lost-", "5 minutes", "1 second", "undelivered", "network_error", 1)
	book("plain-", "5 minutes", "1 second", "undelivered", "", 1)
	for i, cause := range []string{"unknown_number", "not_mobile", "absent", "opted_out"} {
		book(fmt.Sprintf("theirs%d-", i), "5 minutes", "1 second", "undelivered", cause, 1)
	}
	book("proved-", "5 minutes", "1 second", "delivered", "", 1)
	answers(t, l, "no-", "b", provider.Refused, "503", provider.Unknown, "timeout")
	for _, channel := range []string{"mute", "none"} { // the former owes receipts, the latter gives none
		answers(t, l, channel, channel, provider.Accepted, "", provider.Accepted, "")
	}
	execute(t, db, `update dispatcher.attempts a set proved = true from dispatcher.messages m
		where m.seq = a.message_seq and m.id like 'proved-%'`)
	execute(t, db, `update dispatcher.attempts set claimed_at = now() - interval '5 minutes',
		settled_at = now() - interval '5 minutes' where channel in ('b', 'mute', 'none')`)
	execute(t, db, `insert into dispatcher.receipts (channel, reference, message_seq, attempt, part)
		select channel, 'r', message_seq, attempt, 1 from dispatcher.all_attempts
		where channel = 'mute' order by message_seq desc limit 1`)
	got, err := l.Receipts.Timely(t.Context(), 2*time.Minute, 10*time.Minute, time.Minute)
	want := []ledger.Timely{
		{Channel: "a", Accepted: 13, Delivered: 6}, {Channel: "mute", Accepted: 2},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestCarriedCountsOneRouteSinceAnInstant(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"}, ledger.ChannelSpec{Name: "b"})
	answers(t, l, "before", "a", provider.Accepted, "", provider.Refused, "503")
	old := claimAll(t, l, batch("retried", 1), "b").Messages
	if _, err := db.Exec(t.Context(),
		`update dispatcher.messages
			set received_at = received_at - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `update dispatcher.attempts
		set claimed_at = claimed_at - interval '1 hour' where channel = 'a'`); err != nil {
		t.Fatal(err)
	}
	other := message("other")
	other.Plan.Route = "another"
	claimAll(t, l, []ledger.Message{other}, "a")
	answers(t, l, "now", "a", provider.Accepted, "", provider.Accepted, "", provider.Rejected,
		"bad_number", provider.Unknown, "timeout", provider.Refused, "stale", provider.Refused,
		unfitSender)
	toB := batch("to-b", 2)
	toB[0].Plan.FirstChoice, toB[1].Plan.FirstChoice = "b", ""
	claimAll(t, l, toB, "b")
	got, err := l.Reports.Carried(t.Context(), "default", old[0].ReceivedAt.Add(-time.Minute),
		time.Minute, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.Carried{
		{Route: "default", Channel: "a", FirstChoice: 6, Attempts: 6, Accepted: 2, Errors: 1, InForce: 2},
		{Route: "default", Channel: "b", FirstChoice: 1, Attempts: 3}, // one of them of an older message
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, err = l.Reports.Carried(t.Context(), "", old[0].ReceivedAt.Add(-time.Minute), time.Minute, 1)
	all := append([]ledger.Carried{
		{Route: "another", Channel: "a", FirstChoice: 1, Attempts: 1},
	}, want...)
	if diff := cmp.Diff(all, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for i := range want {
		want[i].InForce = 0
	}
	// all were planned under version 1
	got, err = l.Reports.Carried(t.Context(), "default", old[0].ReceivedAt.Add(-time.Minute),
		time.Minute, 2)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	now, err := l.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.Reports.Carried(t.Context(), "default", now, time.Minute, 1); len(got) != 0 ||
		err != nil {
		t.Errorf("since now: %v, %v", got, err)
	}
}

// TestCarriedCountsAnswersThatComeLate to attempts that were claimed before the instant: in
// Accepted and Errors, but not in InForce.
func TestCarriedCountsAnswersThatComeLate(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	// answered before
	answers(t, l, "early", "a", provider.Accepted, "", provider.Unknown, "timeout")
	since, err := l.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answers(t, l, "late", "a", provider.Accepted, "", provider.Unknown, "timeout", provider.Refused,
		"503")
	claimAll(t, l, batch("open", 2), "a") // not answered yet
	execute(t, db, ledgertest.StoreOpen)
	execute(t, db, `update dispatcher.attempts set claimed_at = claimed_at - interval '5 minutes'`)
	answers(t, l, "now", "a", provider.Accepted, "", provider.Unknown, "timeout")
	for late, want := range map[time.Duration]ledger.Carried{
		time.Minute:     {Route: "default", Channel: "a", Attempts: 2, Accepted: 1, Errors: 1, InForce: 1},
		6 * time.Minute: {Route: "default", Channel: "a", Attempts: 5, Accepted: 2, Errors: 3, InForce: 1},
	} {
		got, err := l.Reports.Carried(t.Context(), "default", since, late, 1)
		if err != nil || len(got) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		got[0].FirstChoice = 0
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Errorf("%s: %s", late, diff)
		}
	}
}

// A sequential scan of a hundred million attempts every few seconds would be too slow.
func TestRegularQuestionsNeverScanATable(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	db, l := raw(t, url), connect(t, ledger.Config{URL: url, MaxConns: 1})
	fillHours(t, db, 8000)
	// The view of all attempts looks up whether these have a row.
	execute(t, db, `insert into dispatcher.open_claims (first_seq, instance, claimed_at, seqs, prices,
		segments, channels, reasons, currencies) select n, 1, now(), array[n], '{28000}', '{1}', '{a}',
		'{first_choice}', '{GBP}' from (select dispatcher.first_of(dispatcher.day_at(now())) + 3) f(n)`)
	// Vacuum brings the block range indexes up to date. Autovacuum would do so while the test runs,
	// and that counts as scans.
	execute(t, db, `vacuum analyze`)
	execute(t, db, `select pg_stat_force_next_flush()`)
	scans := `select sum(seq_scan)::bigint from pg_stat_user_tables
		where relname ~ '^(messages|attempts)_'`
	before := scalar[int64](t, db, scans)
	if _, err := l.Reports.Faults(t.Context(), time.Minute, time.Minute); err != nil {
		t.Error(err)
	}
	if _, err := l.Reports.Carried(t.Context(), "default", time.Now().Add(-time.Hour), time.Minute,
		1); err != nil {
		t.Error(err)
	}
	if _, err := l.Receipts.Timely(t.Context(), time.Minute, time.Minute, time.Minute); err != nil {
		t.Error(err)
	}
	recent, err := l.Reports.Recent(t.Context(), 5*time.Minute, 0)
	if err != nil || len(recent.Outcomes) == 0 || recent.Dead != 0 || len(recent.Queues) != 1 {
		t.Errorf("%+v, %v", recent, err)
	}
	l.Close() // a session reports its statistics at its end, at the latest
	for scalar[int64](t, db,
		`select sum(idx_scan)::bigint from pg_stat_user_tables where relname ~ '^attempts_'`) == 0 {
		if t.Context().Err() != nil {
			t.FailNow()
		}
	}
	if n := scalar[int64](t, db, scans) - before; n != 0 {
		t.Errorf("%d sequential scans", n)
	}
}

// The queries of package steer run while claims use all connections of the hot pool.
func TestRegularQuestionsTakeNoConnectionFromClaims(t *testing.T) {
	t.Parallel()
	l := connect(t, ledger.Config{URL: ledgertest.URL(t), MaxConns: 1})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	err := runClaim(t.Context(), l, ledger.Claim{Messages: batch("m", 1), Channels: []string{"a"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			ctx, cancel := context.WithTimeout(t.Context(), tier.LongestWait)
			defer cancel()
			if _, err := l.Reports.Faults(ctx, time.Minute, time.Minute); err != nil {
				t.Error(err)
			}
			if _, err := l.Reports.Carried(ctx, "default", time.Now(), time.Minute, 1); err != nil {
				t.Error(err)
			}
			if _, err := l.Receipts.Timely(ctx, time.Minute, time.Minute, time.Minute); err != nil {
				t.Error(err)
			}
			return give(seen)
		})
	if err != nil {
		t.Error(err)
	}
}
