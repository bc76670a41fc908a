package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// TestContractsWarn: when 80 % of the cap are used, and when the current rate will exceed it.
func TestContractsWarn(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(0, 1, 0)
	for name, c := range map[string]struct {
		days, toDate, commitment, most, forecast int64
		warning                                  string
	}{
		"as agreed":           {15, 500, 900, 2000, 1000, ""},
		"80 % of the cap":     {29, 800, 0, 1000, 828, "80 % of the cap is used"},
		"just below":          {29, 799, 0, 1000, 827, ""},
		"exceeded":            {29, 1001, 0, 1000, 1036, "the cap is exceeded"},
		"too fast":            {3, 300, 0, 1000, 3000, "the cap will be exceeded at this pace"},
		"the first day":       {1, 100, 0, 1000, 3000, ""},
		"too slow":            {15, 100, 900, 0, 200, "the commitment will be missed at this pace"},
		"missed":              {40, 100, 900, 0, 100, "the commitment was missed"},
		"kept, month is over": {40, 900, 900, 1000, 900, "90 % of the cap is used"},
		"missed near the cap": {40, 850, 900, 1000, 850, "85 % of the cap is used; the commitment was missed"},
		"80 % and too fast": {
			3, 800, 0, 1000, 8000, "80 % of the cap is used; the cap will be exceeded at this pace",
		},
	} {
		channel := config.Channel{Name: "a", Contract: config.Contract{
			Unit: admission.Segments, Commitment: c.commitment, Cap: c.most, Begins: 1,
		}}
		got := NewContract(&channel, from, to, from.AddDate(0, 0, int(c.days)),
			[]ledger.DailyRow{{Channel: "a", Segments: c.toDate}, {Channel: "b", Segments: 7}})
		if got.Forecast != c.forecast || got.Warning != c.warning ||
			strings.Join(got.Warnings, "; ") != c.warning {
			t.Errorf("%s: got %+v, want Forecast %v and Warning %v", name, got, c.forecast, c.warning)
		}
	}
}

// TestAnotherCurrencyIsNotCounted in a contract in money, and named.
func TestAnotherCurrencyIsNotCounted(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	channel := config.Channel{
		Name: "a", Price: config.Price{Currency: "GBP"},
		Contract: config.Contract{Unit: admission.Money, Cap: 9_000_000, Begins: 1},
	}
	rows := []ledger.DailyRow{
		{Channel: "a", Currency: "GBP", CostMicros: 1_000_000},
		{Channel: "a", Currency: "USD"},
		{Channel: "a", Currency: "EUR", CostMicros: 500_000},
		{Channel: "b", Currency: "EUR", CostMicros: 7},
		{Channel: "a", Currency: "EUR", CostMicros: 250_000},
	}
	got := NewContract(&channel, from, from.AddDate(0, 1, 0), from.AddDate(0, 0, 20), rows)
	want := []MoveCost{{Currency: "EUR", CostMicros: 750_000}}
	if got.ToDate != 1_000_000 || !slices.Equal(got.NotCounted, want) ||
		got.Warning != "0.75 EUR is not counted" {
		t.Errorf("got %+v", got)
	}
	channel.Contract.Unit = admission.Segments
	if got := NewContract(&channel, from, from.AddDate(0, 1, 0), from.AddDate(0, 0, 20), rows); got.Warning != "" {
		t.Errorf("of segments: got %+v", got)
	}
}

// TestContractMonthsBeginWhereAgreed: also over the turn of the year and in summer time.
func TestContractMonthsBeginWhereAgreed(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"2026-11-21T10:00:00Z": "2026-11-15T00:00:00Z 2026-12-15T00:00:00Z",
		"2026-11-14T23:59:59Z": "2026-10-14T23:00:00Z 2026-11-15T00:00:00Z",
		"2027-01-03T00:00:00Z": "2026-12-15T00:00:00Z 2027-01-15T00:00:00Z",
		"2026-06-14T23:30:00Z": "2026-06-14T23:00:00Z 2026-07-14T23:00:00Z",
	} {
		instant, _ := time.Parse(time.RFC3339, at)
		from, to := ContractMonth(instant, zone, 15)
		if got := from.UTC().Format(time.RFC3339) + " " + to.UTC().Format(time.RFC3339); got != want {
			t.Errorf("%s: %s, not %s", at, got, want)
		}
	}
}
