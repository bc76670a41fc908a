package dispatch

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestConvertedPricesAreRoundedHalfUpToAMicro(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ micros, rate, want int64 }{
		"no rate":              {31_000, 0, 31_000},
		"the base itself":      {31_000, 1_000_000_000, 31_000},
		"1.17":                 {28_000, 1_170_000_000, 32_760},
		"just below a half":    {1, 499_999_999, 0},
		"a half":               {1, 500_000_000, 1},
		"a half above one":     {3, 500_000_000, 2},
		"free":                 {0, 1_170_000_000, 0},
		"as much as there is":  {255_000_000_000_000, 1_000_000_000_000_000, math.MaxInt64},
		"more than a quotient": {math.MaxInt64, 2_000_000_000, math.MaxInt64},
	} {
		p := NewPrice("GBP", PriceList{}).In("EUR", c.rate)
		if got := p.comparable(c.micros); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestConvertedPricesAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(0, 255_000_000_000_000).Draw(t, "micros")
		rate := rapid.Int64Range(1, 1_000_000_000_000_000).Draw(t, "rate")
		exact := new(big.Int).Mul(big.NewInt(micros), big.NewInt(rate))
		exact.Div(exact.Add(exact, big.NewInt(500_000_000)), big.NewInt(1_000_000_000))
		if !exact.IsInt64() {
			exact.SetInt64(math.MaxInt64)
		}
		p := NewPrice("GBP", PriceList{}).In("EUR", rate)
		if got := p.comparable(micros); got != exact.Int64() {
			t.Fatalf("%d at %d is %d, want %s", micros, rate, got, exact)
		}
	})
}

// TestTheCheapestOverCurrenciesIsVerified: b costs the smallest number, in a currency that is worth
// the most. Bare numbers would choose it, at the rates a is the cheapest; an auditor who has the
// rates of the version comes to the same, and one who has others does not.
func TestTheCheapestOverCurrenciesIsVerified(t *testing.T) {
	t.Parallel()
	a := &archive{versions: map[int64]*Routing{}}
	p := setup(t, func(r *Routing) {
		r.Channels[0].Price = NewPrice("EUR", PriceList{Default: 30_000}).In("EUR", 1_000_000_000)
		r.Channels[1].Price = NewPrice("GBP", PriceList{Default: 28_000}).In("EUR", 1_170_000_000)
		r.Channels[2].Price = NewPrice("USD", PriceList{Default: 40_000}).In("EUR", 900_000_000)
		r.Routes[0].Mode, r.Routes[0].Scoring = Mode(BestWorker), expression(t, "-price")
		r.Routes[0].Table = nil
	})
	first := *p.routing
	a.keep(&first)
	p.handle(t, jobsNamed("m", 20))
	p.eventually(t, `select channel, count(*) from audit.attempts group by 1`, map[string]int64{"a": 20})
	p.eventually(t, byState, map[string]int64{"accepted": 20})
	p.stop()
	if records, found := p.audited(t, a); records != 20 || len(found) > 0 {
		t.Errorf("%d records: %+v", records, found)
	}
	other := first
	other.Channels = append([]Channel(nil), first.Channels...)
	other.Channels[1].Price = NewPrice("GBP", PriceList{Default: 28_000}).In("EUR", 1_000_000_000)
	a.keep(&other)
	if _, found := p.audited(t, a); len(found) == 0 {
		t.Error("other rates lead to the same choices")
	}
}

// TestMaxPriceIsInTheBaseCurrency where the document has rates, and else in each channel's own.
func TestMaxPriceIsInTheBaseCurrency(t *testing.T) {
	t.Parallel()
	most := int64(30_000)
	for name, c := range map[string]struct {
		price Price
		over  bool
	}{
		"without rates, below":  {NewPrice("GBP", PriceList{Default: 28_000}), false},
		"without rates, above":  {NewPrice("GBP", PriceList{Default: 30_001}), true},
		"1.17 makes it 0.03276": {NewPrice("GBP", PriceList{Default: 28_000}).In("EUR", 1_170_000_000), true},
		"0.9 makes it 0.027":    {NewPrice("USD", PriceList{Default: 30_000}).In("EUR", 900_000_000), false},
		"without a price":       {Price{}, false},
	} {
		w := newWorld(t)
		task := w.fresh()
		task.msg.MaxPrice, task.at = &most, noon
		ch := w.routing.Channels[0]
		ch.Price = c.price
		if got := task.overPriceCap(&ch); got != c.over {
			t.Errorf("%s: over the price %t, want %t", name, got, c.over)
		}
	}
}
