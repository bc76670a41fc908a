package receive

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// webhookMetrics counts callbacks. The label channel is a name of the routing in force, or empty
// for callbacks that name no such channel; verdict is a value of type verdict.
type webhookMetrics struct {
	callbacks *prometheus.CounterVec
	seconds   prometheus.Histogram
}

func newWebhookMetrics(registry prometheus.Registerer) *webhookMetrics {
	m := &webhookMetrics{
		callbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "dispatcher", Subsystem: "receive", Name: "callbacks_total",
			Help: "Callbacks of providers by result.",
		}, []string{"channel", "verdict"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "dispatcher", Subsystem: "receive", Name: "callback_seconds",
			Help: "Time from the header of a callback until it could be answered, the " +
				"database's commit included.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
	}
	registry.MustRegister(m.callbacks, m.seconds)
	return m
}

func (m *webhookMetrics) count(channel string, v verdict, took time.Duration) {
	m.callbacks.WithLabelValues(channel, string(v)).Inc()
	m.seconds.Observe(took.Seconds())
}
