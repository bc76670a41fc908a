package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
)

// TestPeriodsAreClosedWhenAllTheirDaysAre: the first period begins with the first closed day.
func TestPeriodsAreClosedWhenAllTheirDaysAre(t *testing.T) {
	t.Parallel()
	closed := func(without string, days int) (all []ledger.ClosedDay) {
		for i := range days { // from a Thursday
			day := time.Date(2026, 10, 29+i, 0, 0, 0, 0, time.UTC)
			if date := day.Format(time.DateOnly); date != without {
				all = append(all, ledger.ClosedDay{Date: date, Corrections: i})
			}
		}
		return all
	}
	for _, tc := range []struct {
		unit    Unit
		without string
		days    int
		want    string
	}{
		{Day, "", 2, "[2026-10-29 2026-10-30]"},
		{Week, "", 3, "[]"},
		{Week, "", 4, "[2026-W44]"},
		{Week, "", 10, "[2026-W44]"},
		{Week, "", 11, "[2026-W44 2026-W45]"},
		{Week, "2026-11-04", 20, "[2026-W44 2026-W46]"},
		{Week, "2026-11-08", 20, "[2026-W44 2026-W46]"},
		{Week, "2026-11-09", 19, "[2026-W44 2026-W45]"},
		{Month, "", 3, "[2026-10]"},
		{Month, "2026-11-30", 70, "[2026-10 2026-12]"},
		{Month, "", 32, "[2026-10]"},
		{Month, "", 33, "[2026-10 2026-11]"},
		{Day, "", 0, "[]"},
	} {
		periods, err := ClosedPeriods(tc.unit, closed(tc.without, tc.days))
		names := []string{}
		for _, p := range periods {
			names = append(names, p.Period)
		}
		if got := fmt.Sprint(names); err != nil || got != tc.want {
			t.Errorf("%+v: %s, %v", tc, got, err)
		}
	}
	periods, err := ClosedPeriods(Week, closed("", 11))
	want := ClosedPeriod{
		Period:      "2026-W44",
		Dates:       []string{"2026-10-29", "2026-10-30", "2026-10-31", "2026-11-01"},
		Corrections: 0 + 1 + 2 + 3,
	}
	if diff := cmp.Diff(want, periods[0]); err != nil || diff != "" {
		t.Errorf("got error %v (-want +got):\n%s", err, diff)
	}
}

func TestPeriodsAreThoseOfTheCalendar(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		unit               Unit
		day                string
		name, first, ended string
	}{
		{Day, "2026-11-21", "2026-11-21", "2026-11-21", "2026-11-21"},
		{Week, "2026-11-21", "2026-W47", "2026-11-16", "2026-11-22"},
		{Week, "2026-11-22", "2026-W47", "2026-11-16", "2026-11-22"},
		{Week, "2027-01-01", "2026-W53", "2026-12-28", "2027-01-03"},
		{Month, "2028-02-10", "2028-02", "2028-02-01", "2028-02-29"},
	} {
		day, err := time.Parse(time.DateOnly, tc.day)
		if err != nil {
			t.Fatal(err)
		}
		if tc.unit.Period(day) != tc.name ||
			tc.unit.First(day).Format(time.DateOnly) != tc.first ||
			tc.unit.last(day).Format(time.DateOnly) != tc.ended {
			t.Errorf("%+v: %s, %s", tc, tc.unit.Period(day), tc.unit.First(day))
		}
	}
}
