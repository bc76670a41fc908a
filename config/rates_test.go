package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
)

func TestRatesReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	r := parse(t, `rates: {base: EUR, GBP: "1.17", USD: 0.9, IRR: "0.000000001"}
`+pricedRoute(`{currency: GBP, default: "0.028"}`, `{currency: EUR, default: "0.03"}`))
	want := config.Rates{
		Base: "EUR", Per: map[string]int64{"GBP": 1_170_000_000, "USD": 900_000_000, "IRR": 1},
	}
	if diff := cmp.Diff(want, r.Rates); diff != "" {
		t.Error(diff)
	}
	if rate, ok := r.Rates.Rate("EUR"); rate != 1_000_000_000 || !ok {
		t.Errorf("the base has the rate %d, %t", rate, ok)
	}
	if _, ok := r.Rates.Rate("CHF"); ok {
		t.Error("there is a rate for CHF")
	}
	var none config.Rates
	if _, ok := none.Rate(""); ok {
		t.Error("a document without rates converts")
	}
	var got []string
	for _, c := range config.Diff(parse(t,
		pricedRoute(`{currency: EUR, default: "0.028"}`, `{currency: EUR, default: "0.03"}`)), r) {
		if c.From == "" {
			got = append(got, c.Path+" "+c.To)
		}
	}
	if diff := cmp.Diff([]string{
		"rates.base EUR", "rates.GBP 1.17", "rates.IRR 0.000000001", "rates.USD 0.90",
	}, got); diff != "" {
		t.Error(diff)
	}
}

// TestPricesOfOneCurrencyNeedNoRates: neither do routes that do not score by price.
func TestPricesOfOneCurrencyNeedNoRates(t *testing.T) {
	t.Parallel()
	euro, pound := `{currency: EUR, default: "0.03"}`, `{currency: GBP, default: "0.03"}`
	parse(t, pricedRoute(euro, euro))
	parse(t, pricedRoute(pound, `{currency: GBP, default: "0"}`))
	parse(t,
		"channels: {a: {provider: sandbox, price: "+euro+"}, b: {provider: sandbox, price: "+pound+
			"}, c: {provider: sandbox}}\n"+
			"routes: [{name: r, mode: best_worker, channels: [a, b, c], scoring: {expression: 1 - "+
			"load_ratio}}]")
}

// TestADocumentInForceIsReadUnderTheRulesOfItsTime: a document that an earlier release accepted can
// still be verified and drained. A new document must follow the new rule.
func TestADocumentInForceIsReadUnderTheRulesOfItsTime(t *testing.T) {
	t.Parallel()
	doc := []byte(pricedRoute(`{currency: GBP, default: "0.03"}`, `{currency: EUR, default: "0.03"}`))
	if _, _, err := config.ParseVersion(1, string(doc), nil); err != nil {
		t.Error(err)
	}
	drained, err := setState(doc, "a", config.Draining)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := config.ParseApplied("version 2", drained); err != nil ||
		r.Routing.Channels[0].State != config.Draining {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := config.ParseRouting("r", drained); err == nil {
		t.Error("a new document with prices in two currencies was accepted")
	}
}
