package decide

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
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
	tier.Check(t, func(t *rapid.T) {
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

// TestMaxPriceIsInTheBaseCurrency: if the document has rates, else in each channel's own.
func TestMaxPriceIsInTheBaseCurrency(t *testing.T) {
	t.Parallel()
	most := int64(30_000)
	for name, c := range map[string]struct {
		price Price
		over  bool
	}{
		"without rates, below": {NewPrice("GBP", PriceList{Default: 28_000}), false},
		"without rates, above": {NewPrice("GBP", PriceList{Default: 30_001}), true},
		"1.17 makes it 0.03276": {NewPrice("GBP", PriceList{Default: 28_000}).In("EUR",
			1_170_000_000), true},
		"0.9 makes it 0.027": {NewPrice("USD", PriceList{Default: 30_000}).In("EUR",
			900_000_000), false},
		"without a price": {Price{}, false},
	} {
		w := newFixture(t)
		task := w.fresh()
		task.msg.MaxPrice, task.At = &most, noon
		ch := w.routing.Channels[0]
		ch.Price = c.price
		if got := task.overPriceCap(&ch); got != c.over {
			t.Errorf("%s: over the price %t, want %t", name, got, c.over)
		}
	}
}
