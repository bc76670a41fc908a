package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
)

// TestARangeInStepsIsTheSame: closed days are added up in steps when progress is asked for, else at
// once. Two dimensions are read from the figures, fewer from their sums.
func TestARangeInStepsIsTheSame(t *testing.T) {
	t.Parallel()
	r := lend(t)
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	execute(t, r.db, `insert into dispatcher.carried_figures
		select d::date, 1, d, 1, 'route', 'a', 'b', '', 'shop', 44, extract(day from d)::int
		from generate_series($1::timestamptz, $1 + interval '29 days', '1 day') d`, first)
	execute(t, r.db, `insert into dispatcher.closings
		select d::date, 1, 'UTC', d, d + interval '1 day', now(), 1
		from generate_series($1::timestamptz, $1 + interval '29 days', '1 day') d`, first)
	days := make([]ledger.RangeDay, 30)
	for i := range days {
		noon := first.AddDate(0, 0, i).Add(12 * time.Hour)
		days[i] = ledger.RangeDay{BusinessDay: ledger.NewBusinessDay(noon, time.UTC)}
	}
	read := func(split ledger.Split, done func(int64)) (messages int64) {
		t.Helper()
		figures, err := r.l.Reports.Range(t.Context(), days, split, done)
		if err != nil || len(figures.Open) > 0 || len(figures.Parts) != 1 {
			t.Fatalf("got %+v and error %v", figures, err)
		}
		for _, c := range figures.Parts[0].Carried {
			messages += c.Messages
		}
		return messages
	}
	for _, split := range []ledger.Split{{}, {Tenant: true}, {Tenant: true, CallingCode: true}} {
		var steps []int64
		whole, inSteps := read(split, nil), read(split, func(days int64) { steps = append(steps, days) })
		if whole != 465 || inSteps != whole {
			t.Errorf("%+v: %d messages at once and %d in steps, want 465", split, whole, inSteps)
		}
		if diff := cmp.Diff([]int64{8, 24, 30}, steps); diff != "" {
			t.Errorf("%+v: %s", split, diff)
		}
	}
}
