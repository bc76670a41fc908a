package pipeline

import (
	"context"
	"testing"
	"time"

	"dispatcher/ledger"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// TestALockOnAChannelsRowIsReported: a session has locked the row of channel a and does not commit.
// Claims wait, because they need its counters. The log names the session. When the lock is
// released, everything is sent.
func TestALockOnAChannelsRowIsReported(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	operator, err := pgx.Connect(t.Context(), p.sql.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = operator.Close(context.WithoutCancel(t.Context())) })
	if _, err := operator.Exec(t.Context(), `begin`); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Exec(t.Context(),
		`select from dispatcher.channels where channel = 'a' for update`); err != nil {
		t.Fatal(err)
	}
	locks, err := p.ledger.ChannelLocks(t.Context())
	if err != nil || len(locks) != 1 || locks[0].Channel != "a" ||
		locks[0].PID != int(operator.PgConn().PID()) {
		t.Errorf("got %+v, %v", locks, err)
	}
	handled := make(chan error, 1)
	go func() { handled <- p.Handle(t.Context(), jobsNamed("held", 20), nil) }()
	registry := prometheus.NewRegistry()
	registry.MustRegister(p.cfg.Metrics.trouble)
	for deadline := time.Now().Add(time.Minute); !lockReported(t, registry); {
		if time.Now().After(deadline) {
			t.Fatal("the lock was not reported")
		}
		ledger.Pause(t.Context(), 10*time.Millisecond)
	}
	if _, err := operator.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if err := <-handled; err != nil {
		t.Fatal(err)
	}
	p.eventually(t, byState, map[string]int64{"accepted": 20})
	if locks, err := p.ledger.ChannelLocks(t.Context()); err != nil || len(locks) > 0 {
		t.Errorf("after the end of the transaction: %+v, %v", locks, err)
	}
}

// lockReported reports whether the counter of troubles has a lock.
func lockReported(t *testing.T, registry *prometheus.Registry) bool {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == "channel lock" {
				return true
			}
		}
	}
	return false
}
