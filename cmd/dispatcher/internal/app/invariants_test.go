package app

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// TestGuaranteesAreCheckedInTheBackground: only the first of several instances checks. Its metrics
// and log show violations without message ids, and a failure is reported.
func TestGuaranteesAreCheckedInTheBackground(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // It is dropped anyway.
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	type instance struct {
		*invariants
		registry *prometheus.Registry
		log      *bytes.Buffer
	}
	var instances []instance
	for range 2 {
		l, err := ledger.Connect(t.Context(), ledger.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		if err := l.Instances.Register(t.Context()); err != nil {
			t.Fatal(err)
		}
		registry, log := prometheus.NewRegistry(), &bytes.Buffer{}
		instances = append(instances, instance{&invariants{
			store: l.Audits, grace: time.Minute, deadAfter: time.Minute,
			metrics: newInvariantMetrics(registry), log: zerolog.New(log),
		}, registry, log})
	}
	first, second := instances[0], instances[1]
	// found returns from the metrics the number of violations, and of invariants that have some.
	found := func(i instance) (sum float64, n int) {
		t.Helper()
		if err := i.check(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, value := range gathered(t, i.registry) {
			if strings.HasPrefix(name, "dispatcher_invariant_violations{") {
				n, sum = n+1, sum+value
			}
		}
		return sum, n
	}
	if sum, n := found(first); sum != 0 || n != len(ledger.Invariants) || first.log.Len() > 0 {
		t.Errorf("%v violations of %d invariants: %s", sum, n, first.log)
	}
	exec(`insert into dispatcher.channels (channel, active) values ('a', 1)`)
	exec(`insert into dispatcher.messages (seq, id, lane, state, next_at)
		select dispatcher.first_of(dispatcher.day_at(now())) + n, 'number-' || n, 'bulk', 'waiting', now()
		from generate_series(1, 3) n;
		insert into dispatcher.ids_0 select id, seq from dispatcher.messages;
		delete from dispatcher.due`)
	if sum, n := found(first); sum != 4 || n != len(ledger.Invariants) {
		t.Errorf("%v violations of %d invariants: %s", sum, n, first.log)
	}
	log := first.log.String()
	if strings.Count(log, "\n") != 2 || !strings.Contains(log, "Admitted ≤ limit") ||
		!strings.Contains(log, `"waiting_is_due"`) || strings.Contains(log, "number-") {
		t.Error(log)
	}
	if sum, n := found(second); sum != 0 || n != 0 {
		t.Errorf("the second instance found %v violations of %d invariants", sum, n)
	}
	exec(`delete from dispatcher.instances where id = (select min(id) from dispatcher.instances)`)
	if sum, n := found(first); sum != 0 || n != 0 {
		t.Errorf("an instance that is not the first shows %v violations of %d invariants", sum, n)
	}
	if sum, _ := found(second); sum != 4 {
		t.Errorf("the new first instance found %v violations", sum)
	}
	if at := gathered(t, second.registry)["dispatcher_invariant_checked_timestamp_seconds"]; at <
		float64(time.Now().Add(-time.Minute).Unix()) {
		t.Errorf("checked at %v", at)
	}
	exec(`drop table dispatcher.due cascade`)
	if err := second.check(t.Context()); err == nil {
		t.Error("a failed check counts as successful")
	}
}
