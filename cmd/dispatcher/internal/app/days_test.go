package app

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// TestOldDaysAreDroppedInTheBackground: metrics count them, and a failure is reported.
func TestOldDaysAreDroppedInTheBackground(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // It is dropped anyway.
	if _, err := conn.Exec(t.Context(), `select dispatcher.make_day(dispatcher.day_at(now()) - n)
		from unnest(array[500, 9]) n`); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Connect(t.Context(), ledger.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	var troubles []string
	day, registry := 24*time.Hour, prometheus.NewRegistry()
	d := &days{
		store:     l.Days,
		retention: ledger.Retention{IDs: 7 * day, Payloads: 7 * day, Facts: 400 * day},
		metrics:   newDaysMetrics(registry), log: zerolog.Nop(),
		trouble: func(where string, _ error) { troubles = append(troubles, where) },
	}
	d.show(t.Context())
	if n := gathered(t, registry)["dispatcher_ledger_oldest_day_seconds"]; n < 500*day.Seconds() {
		t.Errorf("the oldest day is %v old before", n)
	}
	d.keep(t.Context())
	d.show(t.Context())
	got := gathered(t, registry)
	for name, bounds := range map[string][2]float64{
		"oldest_day_seconds":                      {9 * day.Seconds(), 11 * day.Seconds()},
		"oldest_payloads_seconds":                 {0, 2 * day.Seconds()},
		"partitions":                              {4, 5},
		"partitions_ahead":                        {2, 2},
		"skipped_partitions":                      {0, 0},
		"late_payloads":                           {0, 0},
		"id_turn_seconds":                         {0, 3600},
		"dropped_partitions_total{what=payloads}": {1, 1},
		"dropped_partitions_total{what=facts}":    {1, 1},
		"bytes{table=messages}":                   {1, 1e9},
	} {
		if n, ok := got["dispatcher_ledger_"+name]; !ok || n < bounds[0] || n > bounds[1] {
			t.Errorf("%s: %v, %v", name, n, ok)
		}
	}
	if len(troubles) > 0 {
		t.Errorf("troubles: %v", troubles)
	}
	l.Close()
	d.store = broken(t).Days
	d.keep(t.Context())
	if len(troubles) != 1 || troubles[0] != "days" {
		t.Errorf("troubles: %v", troubles)
	}
}

// TestDaysAreClosedInTheBackground: all past days are closed once there is a routing with a time
// zone. A failure is reported.
func TestDaysAreClosedInTheBackground(t *testing.T) {
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
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // It is dropped anyway.
	if _, err := conn.Exec(t.Context(),
		`select dispatcher.make_day(dispatcher.day_at(now()) - 3)`); err != nil {
		t.Fatal(err)
	}
	var troubles []string
	registry := prometheus.NewRegistry()
	d := &days{
		reports: l.Reports, routing: l.Routing, clock: l.Clock,
		retention: ledger.Retention{Facts: 400 * 24 * time.Hour},
		metrics:   newDaysMetrics(registry), log: zerolog.Nop(),
		trouble: func(where string, _ error) { troubles = append(troubles, where) },
	}
	closed := func() (days, unclosed int) {
		d.closeDays(t.Context())
		err := conn.QueryRow(t.Context(), `select count(*) from dispatcher.closings
			where zone = 'Asia/Tokyo' and revision = 1`).Scan(&days)
		if err != nil {
			t.Fatal(err)
		}
		return days, int(gathered(t, registry)["dispatcher_ledger_unclosed_dates"])
	}
	if days, unclosed := closed(); days != 0 || unclosed != 0 {
		t.Errorf("before the first routing %d days were closed and %d were not", days, unclosed)
	}
	if _, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
		Author: "test", Document: "timezone: Asia/Tokyo\n" + everyMode,
		Channels: []ledger.ChannelSpec{{Name: "a"}, {Name: "b"}, {Name: "c"}},
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if days, unclosed := closed(); days < 3 || days > 5 || unclosed != 0 {
			t.Errorf("%d days are closed, %d are not", days, unclosed)
		}
	}
	if len(troubles) > 0 {
		t.Errorf("troubles: %v", troubles)
	}
	if _, err := conn.Exec(t.Context(), `delete from dispatcher.closings`); err != nil {
		t.Fatal(err)
	}
	d.routing = broken(t).Routing
	// the first one fails, and the others are not tried
	if days, unclosed := closed(); days != 0 || unclosed < 2 || len(troubles) != 1 {
		t.Errorf("%d days are closed, %d are not; troubles: %v", days, unclosed, troubles)
	}
	d.routing = l.Routing
	if _, err := conn.Exec(t.Context(),
		`drop table dispatcher.choice_figures cascade`); err != nil {
		t.Fatal(err)
	}
	if days, unclosed := closed(); days != 0 || unclosed < 2 || len(troubles) != 2 {
		t.Errorf("%d days are closed, %d are not; troubles: %v", days, unclosed, troubles)
	}
}

// gathered returns the values of metrics by name, with the label if there is one.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += "{" + l.GetName() + "=" + l.GetValue() + "}"
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

// broken returns a ledger on a database without tables.
func broken(t *testing.T) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Connect(t.Context(), ledger.Config{URL: ledgertest.Empty(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// TestTheFirstBusinessDayIsClosed: west of UTC it began on the UTC day before the oldest one.
func TestTheFirstBusinessDayIsClosed(t *testing.T) {
	t.Parallel()
	l, err := ledger.Connect(t.Context(), ledger.Config{URL: ledgertest.Fresh(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if _, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
		Author: "test", Document: "timezone: America/Los_Angeles\n" + everyMode,
		Channels: []ledger.ChannelSpec{{Name: "a"}, {Name: "b"}, {Name: "c"}},
	}); err != nil {
		t.Fatal(err)
	}
	d := &days{
		reports: l.Reports, routing: l.Routing, log: zerolog.Nop(),
		clock: func(context.Context) (time.Time, error) {
			return time.Now().Add(72 * time.Hour), nil
		},
		retention: ledger.Retention{Facts: 400 * 24 * time.Hour},
		metrics:   newDaysMetrics(prometheus.NewRegistry()),
		trouble:   func(where string, err error) { t.Errorf("%s: %v", where, err) },
	}
	d.closeDays(t.Context())
	state, err := l.Days.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed, err := l.Reports.ClosedDays(t.Context())
	want := state.Oldest.Begin().AddDate(0, 0, -1).Format(time.DateOnly)
	if err != nil || len(closed) == 0 || closed[0].Date != want {
		t.Errorf("closed are %v, error %v; the first one should be %s", closed, err, want)
	}
}
