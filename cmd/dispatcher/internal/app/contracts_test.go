package app

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// TestTheUsedPartOfACapIsShown: of the closed days of the contract month, in the unit of the
// contract. A cap that the document no longer has is not shown.
func TestTheUsedPartOfACapIsShown(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, err := ledger.Connect(t.Context(), ledger.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) }) //nolint:errcheck // It is dropped anyway.
	var troubles []error
	registry := prometheus.NewRegistry()
	d := &days{
		reports: l.Reports, routing: l.Routing, clock: l.Clock, metrics: newDaysMetrics(registry),
		log: zerolog.Nop(), trouble: func(_ string, err error) { troubles = append(troubles, err) },
	}
	shows := func(want map[string]float64) {
		t.Helper()
		d.showCaps(t.Context())
		got := gathered(t, registry)
		maps.DeleteFunc(got, func(name string, _ float64) bool {
			return !strings.HasPrefix(name, "dispatcher_ledger_contract_cap_ratio")
		})
		if !maps.Equal(got, want) || len(troubles) > 0 {
			t.Errorf("%v, want %v; troubles: %v", got, want, troubles)
		}
	}
	apply := func(contracts ...any) {
		t.Helper()
		if _, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
			Author: "test", Document: fmt.Sprintf(`
timezone: Asia/Tokyo
channels:
  a: {provider: sandbox, contract: %v}
  b: {provider: sandbox, price: {currency: GBP, default: "0.028"}, contract: %v}
  c: {provider: sandbox}
routes: [{name: default, weights: {a: 25, b: 15, c: 60}}]
`, contracts...),
			Channels: []ledger.ChannelSpec{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	shows(map[string]float64{}) // there is no routing yet

	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	year, month, date := time.Now().In(zone).Date()
	yesterday := ledger.NewBusinessDay(time.Date(year, month, date-1, 12, 0, 0, 0, zone), zone)
	begins := min(yesterday.From.In(zone).Day(), 28)
	apply(fmt.Sprintf("{cap: 400, begins: %d}", begins),
		fmt.Sprintf(`{unit: money, cap: "5.6", begins: %d}`, begins))
	shows(map[string]float64{
		"dispatcher_ledger_contract_cap_ratio{channel=a}": 0,
		"dispatcher_ledger_contract_cap_ratio{channel=b}": 0,
	})

	// Yesterday, and a day two months ago, each with a correction.
	for _, day := range []ledger.BusinessDay{
		yesterday, ledger.NewBusinessDay(yesterday.From.AddDate(0, -2, 0), zone),
	} {
		for revision, accepted := range []int{300, 20} {
			for channel, messages := range map[string]int{"a": accepted, "b": accepted / 2, "c": 1000} {
				if _, err := conn.Exec(t.Context(), `insert into dispatcher.attempt_figures
					select $1, $2, $3, 1, 'default', $4, 'first_choice', 'GBP', '', 44,
					  n, n, n, 0, 0, 0, 0, 0, 0, 0, 0, 0, n, n * 28000, 0, 0, 0, 0
					from (select $5::bigint as n) m`,
					day.Date, revision+1, day.From, channel, messages); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := conn.Exec(t.Context(), `insert into dispatcher.closings
				values ($1, $2, $3, $4, $5, now(), 2)`, day.Date, revision+1, day.Zone, day.From,
				day.To); err != nil {
				t.Fatal(err)
			}
		}
	}
	shows(map[string]float64{
		"dispatcher_ledger_contract_cap_ratio{channel=a}": 0.8, // 320 of 400
		"dispatcher_ledger_contract_cap_ratio{channel=b}": 0.8, // 160 at 0.028 of 5.60
	})
	apply("{commitment: 400}", "{cap: 1000}")
	d.showCaps(t.Context())
	_, shown := gathered(t, registry)["dispatcher_ledger_contract_cap_ratio{channel=a}"]
	if shown || len(troubles) > 0 {
		t.Errorf("a cap that is no more is shown: %v; troubles: %v", shown, troubles)
	}
	d.routing = broken(t).Routing
	if d.showCaps(t.Context()); len(troubles) != 1 {
		t.Errorf("troubles: %v", troubles)
	}
}
