package pipeline

import (
	"testing"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// TestTheCheapestOverCurrenciesIsVerified: the price of b is the smallest number, but in the most
// valuable currency. At the rates a is the cheapest. An audit with the rates of the version derives
// the same, and one with other rates does not.
func TestTheCheapestOverCurrenciesIsVerified(t *testing.T) {
	t.Parallel()
	a := &archive{versions: map[int64]*decide.Routing{}}
	p := setup(t, func(r *decide.Routing) {
		r.Channels[0].Price = decide.NewPrice("EUR", decide.PriceList{Default: 30_000}).In("EUR",
			1_000_000_000)
		r.Channels[1].Price = decide.NewPrice("GBP", decide.PriceList{Default: 28_000}).In("EUR",
			1_170_000_000)
		r.Channels[2].Price = decide.NewPrice("USD", decide.PriceList{Default: 40_000}).In("EUR",
			900_000_000)
		r.Routes[0].Mode, r.Routes[0].Scoring = decide.Mode(decide.BestWorker),
			expression(t, "-price")
		r.Routes[0].Table = nil
	})
	first := *p.routing
	a.keep(&first)
	p.handle(t, jobsNamed("m", 20))
	p.eventually(t, `select channel, count(*) from audit.attempts group by 1`,
		map[string]int64{"a": 20})
	p.eventually(t, byState, map[string]int64{"accepted": 20})
	p.stop()
	if records, found := p.audited(t, a); records != 20 || len(found) > 0 {
		t.Errorf("%d records: %+v", records, found)
	}
	other := first
	other.Channels = append([]decide.Channel(nil), first.Channels...)
	other.Channels[1].Price = decide.NewPrice("GBP", decide.PriceList{Default: 28_000}).In("EUR",
		1_000_000_000)
	a.keep(&other)
	if _, found := p.audited(t, a); len(found) == 0 {
		t.Error("the audit with other rates finds no difference")
	}
}
