package receive

import (
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/ledger"
)

// batcherMetrics count receipts. Label values are bounded: channels come from the routing document,
// the others are closed lists.
type batcherMetrics struct {
	// channel, state: delivered undelivered pending nameless refused lost
	byState  *prometheus.CounterVec
	byResult *prometheus.CounterVec // result: matched early repeated contradictory other_id
	closed   *prometheus.CounterVec // channel, state: accepted delivered undelivered no_receipt
}

func newBatcherMetrics(registry prometheus.Registerer) *batcherMetrics {
	counter := func(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "dispatcher",
			Subsystem: subsystem, Name: name, Help: help,
		}, labels)
	}
	m := &batcherMetrics{
		byState: counter("provider", "receipts_total", "Receipts by what they say.", "channel",
			"state"),
		byResult: counter("receive", "booked_total", "Receipts by result.",
			"result"),
		closed: counter("receive", "closed_total", "Messages by the state that a receipt, or "+
			"a missing one, led to.", "channel", "state"),
	}
	registry.MustRegister(m.byState, m.byResult, m.closed)
	return m
}

func (m *batcherMetrics) received(channel, state string) {
	m.byState.WithLabelValues(channel, state).Inc()
}

func (m *batcherMetrics) recorded(got *ledger.Received, closed *stateCounts) {
	for result, n := range map[string]int{
		"matched": got.Matched, "early": got.Early,
		"repeated": got.Repeated,
	} {
		m.byResult.WithLabelValues(result).Add(float64(n))
	}
	m.odd(got.Contradictory, got.OtherID)
	m.swept(closed)
}

func (m *batcherMetrics) odd(contradictory, otherID int) {
	m.byResult.WithLabelValues("contradictory").Add(float64(contradictory))
	m.byResult.WithLabelValues("other_id").Add(float64(otherID))
}

func (m *batcherMetrics) swept(closed *stateCounts) {
	for c, n := range closed.messages {
		m.closed.WithLabelValues(c.channel, string(c.state)).Add(float64(n))
	}
}
