package app

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/config"
	"dispatcher/ledger"
)

const (
	// leastGrace is the least value of Grace.
	leastGrace = 5 * time.Minute
	// statementTimeout bounds one statement of a check in the background.
	statementTimeout = time.Minute
)

// Grace is how long it may take to repair what a dead instance left behind: until it counts as
// dead, until its submits are over, and until recovery runs, every few seconds.
func Grace(s *config.Settings) time.Duration {
	return max(leastGrace, 2*(s.DeadAfter+s.SendTimeout))
}

// invariants checks the guarantees on recent messages.
type invariants struct {
	store     *ledger.Audits
	interval  time.Duration
	grace     time.Duration
	deadAfter time.Duration
	metrics   *invariantMetrics
	log       zerolog.Logger
	trouble   func(where string, err error)
}

// checkInvariants starts to check the guarantees, unless the settings turn that off.
func (a *App) checkInvariants() {
	s := &a.opts.Settings
	i := &invariants{
		store: a.ledger.Audits, interval: s.InvariantsInterval, grace: Grace(s),
		deadAfter: s.DeadAfter, metrics: newInvariantMetrics(a.registry), log: a.log,
		trouble: a.trouble,
	}
	if i.interval > 0 {
		a.ownLoop("invariants", i.run)
	}
}

// run checks until ctx ends. The interval varies by half, so that checks do not always coincide
// with the same other work.
func (inv *invariants) run(ctx context.Context) {
	for ledger.Pause(ctx, inv.interval/2+rand.N(inv.interval)) {
		if err := inv.check(ctx); err != nil && ctx.Err() == nil {
			inv.trouble("invariants", err)
		}
	}
}

// check runs the checks if this is the instance that is to run them. The log has no details,
// because they contain ids from producers, which may contain anything.
func (inv *invariants) check(ctx context.Context) error {
	first, err := inv.store.IsFirst(ctx, inv.deadAfter)
	if err != nil || !first {
		inv.metrics.violations.Reset()
		return err
	}
	began := time.Now()
	scope, err := inv.store.Recent(ctx, inv.grace)
	if err != nil {
		return err
	}
	auditor, err := inv.store.Open(ctx, statementTimeout)
	if err != nil {
		return err
	}
	defer auditor.Close()
	for i := range ledger.Invariants {
		one, n := &ledger.Invariants[i], 0
		s := scope(one)
		if err := auditor.Check(ctx, one, &s, func(string) { n++ }); err != nil {
			return err
		}
		inv.metrics.violations.WithLabelValues(one.Guarantee, one.Name).Set(float64(n))
		if n > 0 {
			inv.log.Error().Str("guarantee", one.Guarantee).Str("invariant", one.Name).
				Str("holds", one.Sentence).Int("violations", n).
				Msg("a guarantee is violated; \"dispatcher audit invariants\" says where")
		}
	}
	inv.metrics.checked.SetToCurrentTime()
	inv.metrics.seconds.Set(time.Since(began).Seconds())
	return nil
}

// invariantMetrics show the last check.
type invariantMetrics struct {
	violations       *prometheus.GaugeVec // guarantee, invariant
	checked, seconds prometheus.Gauge
}

func newInvariantMetrics(registry prometheus.Registerer) *invariantMetrics {
	opts := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{
			Namespace: "dispatcher", Subsystem: "invariant", Name: name, Help: help,
		}
	}
	m := &invariantMetrics{
		violations: prometheus.NewGaugeVec(opts("violations",
			"Violations of a guarantee that the last check of this instance found."),
			[]string{"guarantee", "invariant"}),
		checked: prometheus.NewGauge(opts("checked_timestamp_seconds",
			"When this instance last checked the guarantees, as a Unix time.")),
		seconds: prometheus.NewGauge(opts("check_seconds", "How long that took.")),
	}
	registry.MustRegister(m.violations, m.checked, m.seconds)
	return m
}
