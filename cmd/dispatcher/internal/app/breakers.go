package app

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/provider/breaker"
)

// breakerMetrics shows the state of each channel's breaker: 0 closed, 1 half-open, 2 open.
type breakerMetrics struct {
	state *prometheus.GaugeVec

	mu      sync.Mutex
	changed map[string]breakerChange // guarded by mu; by channel, once its breaker has changed
}

// breakerChange is the latest state of a breaker and when it began. For a channel that is probed
// again and again, the time not closed counts from the first opening.
type breakerChange struct {
	to    breaker.State
	since time.Time
}

func newBreakerMetrics(registry prometheus.Registerer) *breakerMetrics {
	m := &breakerMetrics{state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "dispatcher", Subsystem: "provider", Name: "breaker_state",
		Help: "State of a channel's breaker: 0 closed, 1 half-open, 2 open.",
	}, []string{"channel"}), changed: map[string]breakerChange{}}
	registry.MustRegister(m.state)
	return m
}

// begin shows a new breaker, which is closed.
func (m *breakerMetrics) begin(channel string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.changed, channel)
	m.state.WithLabelValues(channel).Set(float64(breaker.Closed))
}

// forget removes a channel.
func (m *breakerMetrics) forget(channel string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.changed, channel)
	m.state.DeleteLabelValues(channel)
}

// set records a change.
func (m *breakerMetrics) set(channel string, to breaker.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.WithLabelValues(channel).Set(float64(to))
	was, known := m.changed[channel]
	since := time.Now()
	if known && was.to != breaker.Closed && to != breaker.Closed {
		since = was.since
	}
	m.changed[channel] = breakerChange{to, since}
}

// since returns the state of a channel's breaker and when it began, in the time of the clock that
// now was read from; nil when the breaker has never changed.
func (m *breakerMetrics) since(channel string, now time.Time) (state string, since *time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.changed[channel]
	if !known {
		return breaker.Closed.String(), nil
	}
	return last.to.String(), new(now.Add(-time.Since(last.since)).Round(time.Millisecond))
}
