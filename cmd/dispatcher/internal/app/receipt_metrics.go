package app

import "github.com/prometheus/client_golang/prometheus"

// receiptMetrics counts the receipts of channels whose slots are kept until then. The label state is
// delivered, undelivered, pending, or refused for one that could not be taken.
type receiptMetrics struct{ receipts *prometheus.CounterVec }

func newReceiptMetrics(registry prometheus.Registerer) *receiptMetrics {
	m := &receiptMetrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "dispatcher", Subsystem: "provider", Name: "receipts_total",
		Help: "Receipts of channels whose active slots are kept until then, by what they say.",
	}, []string{"channel", "state"})}
	registry.MustRegister(m.receipts)
	return m
}

func (m *receiptMetrics) count(channel, state string) {
	m.receipts.WithLabelValues(channel, state).Inc()
}
