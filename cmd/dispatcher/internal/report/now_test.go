package report

import (
	"math"
	"testing"

	"dispatcher/config"
	"dispatcher/ledger"
)

func TestSharesNowWeighRoutesByWhatTheyCarried(t *testing.T) {
	t.Parallel()
	doc, err := config.ParseRouting("routing.yaml", []byte(`
channels:
  a: {provider: sandbox}
  b: {provider: sandbox}
  c: {provider: sandbox}
routes:
  - {name: codes, match: {lane: otp}, weights: {a: 50, b: 50}}
  - {name: rest, match: {tenant: shop}, weights: {a: 10, c: 90}}
  - {name: idle, match: {}, mode: longest_idle, channels: [a, b, c]}
lanes: {otp: {}}
`))
	if err != nil {
		t.Fatal(err)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-9 }
	got := SharesNow(doc, nil)
	if s := got["a"]; !near(s.Agreed, 0.3) || s.Messages != 0 || s.Far() {
		t.Errorf("without traffic routes count alike: %+v", s)
	}
	got = SharesNow(doc, []ledger.RecentCarried{
		{Route: "codes", Channel: "a", Accepted: 100},
		{Route: "codes", Channel: "b", Accepted: 200},
		{Route: "rest", Channel: "c", Accepted: 900},
		{Route: "idle", Channel: "b", Accepted: 5000},
		{Route: "gone", Channel: "b", Accepted: 5000},
	})
	a, b, c := got["a"], got["b"], got["c"]
	if !near(a.Agreed, 0.2) || !near(b.Agreed, 0.125) || !near(c.Agreed, 0.675) ||
		!near(a.Carried, 1./12) || !near(c.Carried, 0.75) || a.Messages != 1200 {
		t.Errorf("got %+v", got)
	}
	if !a.Far() || b.Far() || !c.Far() {
		t.Errorf("far: a %v, b %v, c %v", a.Far(), b.Far(), c.Far())
	}
}
