package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
	"dispatcher/provider"
)

func TestDailyCountsAttemptsByTheirOutcomes(t *testing.T) {
	t.Parallel()
	l := open(t, ledger.ChannelSpec{Name: "a", ActiveMax: 7}, ledger.ChannelSpec{Name: "b"})
	var shown []ledger.Message
	err := runClaim(t.Context(), l, ledger.Claim{Messages: batch("m", 11), Channels: []string{
		"a", "b",
	}}, func(seen *ledger.Seen) (ledger.Decisions, error) {
		shown = seen.Messages
		d, err := give(seen)
		for i := range d.Each {
			if a := &d.Each[i].Attempt; a.Channel == "b" {
				a.Reason, a.Currency, a.Ranking = ledger.ByFallback, "EUR",
					[]byte(`[{"channel":"a","reason":"no_slot"}]`)
			}
		}
		return d, err
	})
	if err != nil {
		t.Fatal(err)
	}
	settlements := accepted(shown[:7]) // those on channel a
	for i, s := range []ledger.Settlement{
		{Outcome: provider.Rejected, State: ledger.Rejected},
		{Outcome: provider.Refused, State: ledger.Retry},
		{Outcome: provider.Throttled, State: ledger.Retry},
		{Outcome: provider.Unknown, State: ledger.Unknown, Segments: 1, PriceMicros: 28000},
		{Outcome: provider.Refused, State: ledger.Retry, Code: "late"},
	} {
		s.Seq, s.Attempt = shown[i].Seq, 1
		settlements[i] = s
	}
	settleAll(t, l, settlements)
	now := time.Now().UTC()
	got := figuresOf(t, l, now).Rows
	want := []ledger.DailyRow{
		{
			Route: "default", Channel: "a", Attempts: 7, Submitted: 5, Accepted: 2,
			Rejected: 1, Refused: 1, Throttled: 1, Unknown: 1, Unsent: 1,
			Segments: 2, CostMicros: 56000, UnknownSegments: 1, UnknownMicros: 28000,
			Currency: "GBP",
		},
		{Route: "default", Channel: "b", Fallback: 4, Attempts: 4, Pending: 4, Currency: "EUR"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if failed := got[0].Failed(); failed != 3 {
		t.Errorf("%d failed", failed)
	}
	if got := figuresOf(t, l, now.AddDate(0, 0, -1)).Rows; len(got) != 0 {
		t.Errorf("yesterday has %d rows", len(got))
	}
	totals, err := l.Reports.Totals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantTotals := ledger.Totals{
		Messages: map[ledger.State]int64{
			ledger.Accepted: 2, ledger.Rejected: 1, ledger.Retry: 3,
			ledger.Unknown: 1, ledger.Sending: 4,
		},
		Channels: []ledger.ChannelTotal{
			{
				Channel: "a", FirstChoice: 11, Attempts: 7, Accepted: 2, Unknown: 1, Segments: 2,
				CostMicros: 56000, Currency: "GBP",
			},
			{Channel: "b", Fallback: 4, Attempts: 4, Currency: "EUR"},
		},
	}
	if diff := cmp.Diff(wantTotals, totals); diff != "" {
		t.Error(diff)
	}
}

func TestDailyHasOneRowForEachCurrency(t *testing.T) {
	t.Parallel()
	l := open(t, ledger.ChannelSpec{Name: "a"})
	err := runClaim(t.Context(), l, ledger.Claim{Messages: batch("m", 3), Channels: []string{"a"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			d, err := give(seen)
			d.Each[0].Attempt.Currency = "EUR"
			return d, err
		})
	if err != nil {
		t.Fatal(err)
	}
	got := figuresOf(t, l, time.Now()).Rows
	want := []ledger.DailyRow{
		{Route: "default", Channel: "a", Attempts: 1, Pending: 1, Currency: "EUR"},
		{Route: "default", Channel: "a", Attempts: 2, Pending: 2, Currency: "GBP"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRecordTellsEverythingAboutOneMessage(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	m := message("m")
	m.NumberHMAC, m.EnvelopeHMAC, m.CallingCode = -17, 18, 44
	seen := claimAll(t, l, []ledger.Message{m}, "a")
	settleAll(t, l, accepted(seen.Messages))
	r, err := l.Messages.Record(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	want := seen.Messages[0]
	want.State, want.Attempts, want.Digest = ledger.Accepted, 1, 0
	if diff := cmp.Diff(want, r.Message); diff != "" {
		t.Error(diff)
	}
	if r.Routing == nil || r.Routing.Document != "routes: []" || !r.FinishedAt.IsZero() {
		t.Errorf("routing %v, finished %s", r.Routing, r.FinishedAt)
	}
	wantAttempts := []ledger.AttemptRecord{{
		Attempt: ledger.Attempt{
			Number: 1, Channel: "a", Reason: ledger.ByFirstChoice, Segments: 1,
			PriceMicros: 28000, Currency: "GBP",
		},
		Outcome: "accepted", Reference: "ref-m", ClaimedAt: seen.Now,
		SettledAt: r.Attempts[0].SettledAt, Instance: l.Instances.ID(), Answers: 1,
	}}
	if diff := cmp.Diff(wantAttempts, r.Attempts); diff != "" || r.Attempts[0].SettledAt.IsZero() {
		t.Error(diff)
	}
	if _, err := l.Messages.Record(t.Context(), "nobody"); !errors.Is(err, ledger.ErrNoMessage) {
		t.Errorf("got %v", err)
	}
}

// TestPartsThatWereAcceptedAreBilledWhateverBecameOfTheRest: two of three parts have references,
// the third got no answer.
func TestPartsThatWereAcceptedAreBilledWhateverBecameOfTheRest(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	s := unknown(m)
	s.Reference, s.Segments, s.PriceMicros = "r1 r2", 3, 90_000
	settleAll(t, l, []ledger.Settlement{s})
	rows := figuresOf(t, l, time.Now()).Rows
	if len(rows) != 1 {
		t.Fatalf("%+v", rows)
	}
	if r := rows[0]; r.Segments != 2 || r.CostMicros != 60_000 || r.UnknownSegments != 1 ||
		r.UnknownMicros != 30_000 || r.Unknown != 1 {
		t.Errorf("%+v", r)
	}
	if got := see(`select sum(case outcome when 'unknown'
		then cardinality(string_to_array(provider_reference, ' ')) else segments end)::text
		from audit.attempts`); got != "2" {
		t.Errorf("the query of the guide counts %s", got)
	}
}
