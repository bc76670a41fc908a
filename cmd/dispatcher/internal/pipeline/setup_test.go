package pipeline

import (
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/ledgertest/lent"
	"dispatcher/selector"
	"dispatcher/selector/score"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// testRouting has three channels at 25/15/60.
func testRouting(t testing.TB) *decide.Routing {
	t.Helper()
	table, err := selector.NewTable([]selector.Entry{
		{Name: "a", Weight: selector.MustWeight("25")},
		{Name: "b", Weight: selector.MustWeight("15")},
		{Name: "c", Weight: selector.MustWeight("60")},
	})
	if err != nil {
		t.Fatal(err)
	}
	route := decide.Route{
		Route: config.Route{Name: "default", MaxSegments: 10}, Table: table,
		Members: []int{0, 1, 2},
	}
	r := &decide.Routing{
		Version: 7, Zone: time.UTC, Routes: []decide.Route{route},
		Lanes: map[string]decide.Lane{"bulk": {Lane: config.Lane{
			Name: "bulk", TTL: time.Hour,
			MaxWaiting: 100,
		}}},
	}
	for _, name := range []string{"a", "b", "c"} {
		r.Channels = append(r.Channels, decide.Channel{
			Channel: config.Channel{Name: name, Capacity: 100},
			Price:   decide.NewPrice("GBP", decide.PriceList{Default: 30_000}), Account: name,
		})
	}
	return r
}

// testKeys is the key file of these tests.
var testKeys = []selector.Key{{1}}

func expression(t testing.TB, source string) decide.Scoring {
	t.Helper()
	e, err := score.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	return decide.Scoring{Expression: e}
}

// qualityAbove requires a quality above n, until expiresAfter unless that is 0.
func qualityAbove(n float64, expiresAfter time.Duration) selector.Selector {
	return selector.Selector{
		Key: "quality", Operator: selector.GreaterThan,
		Value: selector.NumberValue(n), ExpiresAfter: expiresAfter,
	}
}

func TestMain(m *testing.M) {
	tier.Parallel(10)
	ledgertest.Main(m, lent.Close)
}
