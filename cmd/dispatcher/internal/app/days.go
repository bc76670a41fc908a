package app

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/ledger"
)

const (
	// daysInterval is how often an instance checks whether to make or drop partitions. It varies by
	// half, so that instances that start together do not check together.
	daysInterval = 5 * time.Minute
	// firstDays is the longest time from the start to the first check.
	firstDays = time.Minute
	// stateTimeout bounds reading the state of the days.
	stateTimeout = 15 * time.Second
)

// days makes and drops the partitions of the ledger, closes the business days that are over, and
// shows their state.
type days struct {
	store     *ledger.Days
	reports   *ledger.Reports
	routing   *ledger.Routing
	clock     func(ctx context.Context) (time.Time, error) // of the database
	retention ledger.Retention
	metrics   *daysMetrics
	log       zerolog.Logger
	trouble   func(where string, err error)
	// publish is Options.DaysClosed, or nil; changed says that it is to be called.
	publish func(ctx context.Context) (again bool, err error)
	changed bool // owned by run
}

// factsKept is how long the facts of messages are kept.
func (a *App) factsKept() time.Duration {
	return cmp.Or(a.opts.Settings.LedgerRetention, 400*24*time.Hour)
}

// keepDays starts to make and drop partitions. Settings without retention, as in tests, get the
// default.
func (a *App) keepDays() {
	s := &a.opts.Settings
	d := &days{
		store: a.ledger.Days, reports: a.ledger.Reports, routing: a.ledger.Routing,
		clock: a.ledger.Clock,
		retention: ledger.Retention{
			IDs:      cmp.Or(s.IDRetention, 7*24*time.Hour),
			Payloads: cmp.Or(s.PayloadRetention, 7*24*time.Hour),
			Facts:    a.factsKept(),
		},
		metrics: newDaysMetrics(a.registry), log: a.log, trouble: a.trouble,
	}
	if a.opts.DaysClosed != nil {
		d.publish, d.changed = func(ctx context.Context) (bool, error) {
			return a.opts.DaysClosed(ctx, a.ledger)
		}, true
	}
	a.ownLoop("days", d.run)
}

// run checks the days until ctx ends. The metrics are shown from the start.
func (d *days) run(ctx context.Context) {
	for what, keep := range map[string]time.Duration{
		"ids": d.retention.IDs, "payloads": d.retention.Payloads, "facts": d.retention.Facts,
	} {
		d.metrics.retention.WithLabelValues(what).Set(keep.Seconds())
	}
	d.show(ctx)
	pause := rand.N(firstDays)
	for ledger.Pause(ctx, pause) {
		d.keep(ctx)
		d.closeDays(ctx)
		d.publishDays(ctx)
		d.showCaps(ctx)
		d.show(ctx)
		pause = daysInterval/2 + rand.N(daysInterval)
	}
}

// keep does what is due. It has no time limit, because reading a day of millions of messages takes
// minutes, and none of its other statements waits long.
func (d *days) keep(ctx context.Context) {
	kept, err := d.store.Keep(ctx, d.retention)
	d.metrics.dropped.WithLabelValues("payloads").Add(float64(len(kept.Payloads)))
	d.metrics.dropped.WithLabelValues("facts").Add(float64(len(kept.Facts)))
	if kept.Any() {
		d.log.Info().Strs("made", texts(kept.Made)).Strs("indexed", texts(kept.Indexed)).
			Int64("receipts_moved", kept.Receipts).Bool("ids_turned", kept.Turned).
			Strs("payloads_dropped", texts(kept.Payloads)).Int64("late_payloads_dropped", kept.Late).
			Strs("dropped", texts(kept.Facts)).Strs("skipped", texts(kept.Skipped)).
			Msg("days of the ledger were made or dropped")
	}
	if err != nil && ctx.Err() == nil {
		d.trouble("days", err)
	}
}

// publishDays publishes the changes of closed days. It tries again later after an error, or if some
// could not be published yet.
func (d *days) publishDays(ctx context.Context) {
	if d.publish == nil || !d.changed {
		return
	}
	again, err := d.publish(ctx)
	d.changed = again || err != nil
	if err != nil && ctx.Err() == nil {
		d.trouble("publishing of reports", err)
	}
}

// texts are the days as strings.
func texts[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = one.String()
	}
	return out
}

// show updates the metrics.
func (d *days) show(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	state, err := d.store.State(ctx)
	if err != nil {
		return // keep and others report a database that is away
	}
	d.metrics.set(&state)
	if sizes, err := d.store.Sizes(ctx); err == nil {
		for table, bytes := range sizes {
			d.metrics.bytes.WithLabelValues(table).Set(float64(bytes))
		}
	}
}

// daysMetrics show the state of the days.
type daysMetrics struct {
	days, ahead, skipped, late, unclosed   prometheus.Gauge
	oldestFacts, oldestPayloads, turnedAgo prometheus.Gauge
	bytes                                  *prometheus.GaugeVec   // table: see ledger.Days.Sizes
	capUsed                                *prometheus.GaugeVec   // channel
	retention                              *prometheus.GaugeVec   // what: ids, payloads, facts
	dropped                                *prometheus.CounterVec // what: payloads, facts
}

func newDaysMetrics(registry prometheus.Registerer) *daysMetrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{
			Namespace: "dispatcher", Subsystem: "ledger", Name: name, Help: help,
		}
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts(opts(name, help)))
		registry.MustRegister(g)
		return g
	}
	m := &daysMetrics{
		days:  gauge("partitions", "Days that the ledger has partitions for."),
		ahead: gauge("partitions_ahead", "Days after today that there are partitions for."),
		skipped: gauge("skipped_partitions",
			"Days kept for messages that have not ended, or ended lately."),
		unclosed: gauge("unclosed_dates",
			"Business days that are over and whose figures are not up to date."),
		late: gauge("late_payloads", "Payloads kept for messages that have not ended."),
		oldestFacts: gauge("oldest_day_seconds",
			"Age of the oldest day, from its beginning."),
		oldestPayloads: gauge("oldest_payloads_seconds",
			"Age of the oldest day with payloads, from its beginning."),
		turnedAgo: gauge("id_turn_seconds", "Time since ids were last forgotten."),
		bytes: prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("bytes",
			"Size of the ledger on disk by what it holds.")), []string{"table"}),
		retention: prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("retention_seconds",
			"How long this instance keeps ids, payloads and facts.")), []string{"what"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts(opts("dropped_partitions_total",
			"Days that this instance dropped: payloads or facts.")), []string{"what"}),
		capUsed: prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("contract_cap_ratio",
			"Used part of the cap of the contract month, on closed days.")), []string{"channel"}),
	}
	registry.MustRegister(m.bytes, m.retention, m.dropped, m.capUsed)
	return m
}

func (m *daysMetrics) set(s *ledger.DaysState) {
	age := func(since time.Time) float64 { return max(s.Now.Sub(since), 0).Seconds() }
	m.days.Set(float64(s.Count))
	m.ahead.Set(float64(s.Latest - ledger.DayAt(s.Now)))
	m.skipped.Set(float64(len(s.Skipped)))
	m.late.Set(float64(s.LatePayloads))
	m.oldestFacts.Set(age(s.Oldest.Begin()))
	m.oldestPayloads.Set(age(s.OldestPayloads.Begin()))
	m.turnedAgo.Set(age(s.Turned))
}
