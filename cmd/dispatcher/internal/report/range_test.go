package report

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
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

// TestRowsHaveTheAgreedShareByTime of their period: version 2 was in force for a quarter of the
// first day, and for all of the second. It is that of the route, so it is the same for each tenant.
// It is left out by hour, and unless rows are by route with the channel as the last dimension.
func TestRowsHaveTheAgreedShareByTime(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }
	f := &RangeFigures{
		Unit: Day, Days: []time.Time{hour(12), hour(36)},
		Versions: map[int64]*config.Routing{
			1: document("default", "a", "100", "b", "0"), 2: document("default", "a", "20", "b", "80"),
		},
		InForce: []ledger.InForce{
			{Version: 1, Base: 1, From: hour(-100), To: hour(18)},
			{Version: 2, Base: 2, From: hour(18), To: hour(48)},
		},
	}
	f.Current = f.Versions[2]
	for _, period := range []string{"2026-11-20", "2026-11-21"} {
		for _, tenant := range []string{"", "shop"} {
			part := ledger.PartFigures{Part: ledger.Part{Period: period, Tenant: tenant}}
			part.Choices = []ledger.ChoiceRow{
				{Version: 2, Route: "default", Channel: "a", FirstChoice: 20},
				{Version: 2, Route: "default", Channel: "b", FirstChoice: 80},
			}
			f.Ledger.Parts = append(f.Ledger.Parts, part)
		}
	}
	for _, tc := range []struct {
		by   []Dimension
		want []any // of the first day, then of the second
	}{
		{[]Dimension{ByRoute, ByChannel}, []any{0.8, 0.2, 0.2, 0.8}},
		{[]Dimension{ByTenant, ByRoute, ByChannel}, []any{0.8, 0.2, 0.8, 0.2, 0.2, 0.8, 0.2, 0.8}},
		{[]Dimension{ByHour, ByRoute, ByChannel}, []any{nil, nil, nil, nil}},
		{[]Dimension{ByChannel}, []any{nil, nil, nil, nil}},
		{[]Dimension{ByChannel, ByRoute}, []any{nil, nil, nil, nil}},
	} {
		f.By = tc.by
		var got []any
		for _, r := range NewRange(f).Rows {
			if r.AgreedShareByTime == nil {
				got = append(got, nil)
			} else {
				got = append(got, math.Round(1e9**r.AgreedShareByTime)/1e9)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("by %v (-want +got):\n%s", tc.by, diff)
		}
	}
}
