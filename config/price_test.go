package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config"
	"dispatcher/provider/sms"
)

func TestPricesReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	r := parse(t, `
timezone: Europe/Paris
channels:
  a:
    provider: sandbox
    price:
      - {currency: EUR, default: "0.041", countries: {FR: "0.045"}, prefixes: {"+336": "0.043"}, networks: {"208": "0.042", "20801": 0.0395}}
      - {from: 2026-12-01, default: "0.043"}
      - {from: 2026-12-31T23:00:00Z, currency: EUR, default: 0}
  b: {provider: sandbox, price: {currency: USD, default: "0.02"}}
routes:
  - {name: r, weights: {a: 1, b: 1}, price_cap: {EUR: "0.2", USD: "0.25"}}
`)
	want := config.Price{Currency: "EUR", Lists: []config.PriceList{
		{
			Default: 41_000, Countries: map[string]int64{"fr": 45_000},
			Prefixes: map[string]int64{"+336": 43_000},
			Networks: map[string]int64{"208": 42_000, "20801": 39_500},
		},
		{From: time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC), Default: 43_000}, // midnight in Paris
		{From: time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)},
	}}
	if diff := cmp.Diff(want, r.Channels[0].Price); diff != "" {
		t.Error(diff)
	}
	if got := r.Channels[0].Price.Least(); got != 0 {
		t.Errorf("the least is %d, want that of the last list", got)
	}
	if diff := cmp.Diff(map[string]int64{"EUR": 200_000, "USD": 250_000},
		r.Routes[0].PriceCap); diff != "" {
		t.Error(diff)
	}
}

func TestACapAtTheLowestPriceIsAccepted(t *testing.T) {
	t.Parallel()
	r := parse(t,
		`{channels: {a: {provider: sandbox, price: {currency: EUR, default: 0.04, prefixes: {"+44": 0.03}}}}, routes: [{name: r, weights: {a: 1}, price_cap: {EUR: 0.03}}]}`)
	if got := r.Routes[0].PriceCap["EUR"]; got != 30_000 {
		t.Errorf("cap %d", got)
	}
}

func TestSendersReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	r := parse(t, `
channels:
  a:
    provider: sandbox
    senders:
      default: ACME
      rules:
        - {countries: [US, ca], allow: [long_code, short_code], from: "+14155550100"}
        - {country: fr, id: "36180"}
        - {allow: alphanumeric}
blocked: {prefix: "+4487", countries: [KP], premium: true}
routes: [{name: r, weights: {a: 1}}]
`)
	want := config.Senders{Default: "ACME", Rules: []config.SenderRule{
		{
			Countries: []string{"us", "ca"}, Allow: []sms.SenderKind{sms.LongCode, sms.ShortCode},
			From: "+14155550100",
		},
		{Countries: []string{"fr"}, IDs: []string{"36180"}},
		{Allow: []sms.SenderKind{sms.Alphanumeric}},
	}}
	if diff := cmp.Diff(want, r.Channels[0].Senders); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(config.Blocked{
		Prefixes: []string{"+4487"}, Countries: []string{"kp"}, Premium: true,
	}, r.Blocked); diff != "" {
		t.Error(diff)
	}
}

func TestDiffNamesAPriceFromADate(t *testing.T) {
	t.Parallel()
	doc := func(amount string) *config.Routing {
		return parse(t,
			`{channels: {a: {provider: sandbox, price: [{currency: EUR, default: 0.04}, {from: 2026-12-01, default: `+amount+`}]}}, routes: [{name: r, weights: {a: 1}}]}`)
	}
	want := []config.Change{
		{Path: `channels.a.price.from."2026-12-01T00:00:00Z".default`, From: "0.05", To: "0.06"},
	}
	if diff := cmp.Diff(want, config.Diff(doc("0.05"), doc("0.06"))); diff != "" {
		t.Error(diff)
	}
}
