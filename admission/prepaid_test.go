package admission_test

import (
	"testing"
	"time"

	"dispatcher/admission"
)

func budgetOf(toppedUp, granted int64) *admission.Counter {
	l := admission.Limit{
		Window: admission.Prepaid, Unit: admission.Money, Currency: "GBP", Max: toppedUp,
	}
	return &admission.Counter{
		Limit: l, Max: toppedUp, Granted: granted, Start: admission.Prepaid.Start(time.Now(), time.UTC),
	}
}

// TestThePrepaidWindowHasNoEnd: no decision, however late, opens a new window.
func TestThePrepaidWindowHasNoEnd(t *testing.T) {
	t.Parallel()
	c := budgetOf(10, 7)
	for _, year := range []int{2001, 2026, 2199} {
		now := time.Date(year, 7, 1, 12, 0, 0, 0, time.UTC)
		if c.Roll(now, time.UTC) || c.Ahead(now) || !c.End(time.UTC).After(now) {
			t.Errorf("in %d: %+v, until %s", year, c, c.End(time.UTC))
		}
	}
	// a row whose window was never opened
	fresh := admission.Counter{Limit: c.Limit, Max: 10, Start: time.Unix(0, 0)}
	if !fresh.Roll(time.Now(), time.UTC) || !fresh.Start.Equal(c.Start) {
		t.Errorf("%+v", fresh)
	}
	if w, err := admission.ParseWindow("prepaid"); err != nil || w != admission.Prepaid ||
		w.String() != "prepaid" || w.Seconds() != 1<<31-1 {
		t.Errorf("%v, %v", w, err)
	}
}

// TestASpentBudgetHasNoRoomByItself: other windows that are used up have room again later.
func TestASpentBudgetHasNoRoomByItself(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := &admission.Moment{Now: now, Earliest: now, Zone: time.UTC}
	for name, c := range map[string]struct {
		toppedUp, granted int64
		fits              bool
	}{
		"just enough":       {10, 7, true},
		"too little left":   {10, 8, false},
		"nothing topped up": {0, 0, false},
	} {
		counter := budgetOf(c.toppedUp, c.granted)
		_, e := admission.Fit(m, []admission.Account{{Counter: counter, Rate: 1}},
			&admission.Need{Segments: 1, Micros: 3})
		if (e == nil) != c.fits || e != nil && (!e.When.IsZero() || e.Why != admission.Full) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestABudgetIsLowFromFourFifthsOn(t *testing.T) {
	t.Parallel()
	for counts, want := range map[[2]int64]admission.Level{
		{0, 0}: admission.Unpaid, {10, 0}: admission.Enough, {10, 7}: admission.Enough,
		{10, 8}: admission.Low, {10, 9}: admission.Low, {10, 10}: admission.Spent,
		{10, 11}: admission.Spent, {9, 7}: admission.Enough, {9, 8}: admission.Low,
		{1, 0}: admission.Enough,
	} {
		if got := budgetOf(counts[0], counts[1]).Level(); got != want {
			t.Errorf("%d of %d: %s, want %s", counts[1], counts[0], got, want)
		}
	}
}

// TestABudgetOfADocumentIsNotClosed although the document gives it no max. An unused one has room.
func TestABudgetOfADocumentIsNotClosed(t *testing.T) {
	t.Parallel()
	budget, day := budgetOf(0, 0).Limit, admission.Limit{Window: admission.Day}
	if budget.Closed() || !day.Closed() {
		t.Errorf("%t, %t", budget.Closed(), day.Closed())
	}
	unused, none := budget.Unused(), day.Unused()
	if unused.Free() < 1e15 || none.Free() != 0 {
		t.Errorf("%d, %d", unused.Free(), none.Free())
	}
}
