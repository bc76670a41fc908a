package statushook

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of deliveries, label result.
const (
	delivered = "delivered" // the receiver took the event
	failed    = "failed"    // the call failed and will be repeated
	refused   = "refused"   // the receiver refused the event, which is dropped
	expired   = "expired"   // the event was older than max_age and is dropped
)

// metrics are labelled by the name of the webhook, which the file of webhooks bounds.
type metrics struct {
	calls   *prometheus.CounterVec   // webhook, result
	seconds *prometheus.HistogramVec // webhook
	oldest  *prometheus.Desc         // webhook

	mu sync.Mutex
	// guarded by mu: by webhook, the times of the events that are being sent
	open map[string]map[*time.Time]struct{}
}

func newMetrics(registry prometheus.Registerer) *metrics {
	const namespace, subsystem = "dispatcher", "statushook"
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "events_total",
			Help: "Status events and calls of webhooks, by result.",
		}, []string{"webhook", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "call_seconds",
			Help:    "Duration of a call of a webhook.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 12),
		}, []string{"webhook"}),
		oldest: prometheus.NewDesc(
			prometheus.BuildFQName(namespace, subsystem, "oldest_event_seconds"),
			"Age of the oldest event that is being sent to a webhook; 0 when there is none.",
			[]string{"webhook"}, nil),
		open: map[string]map[*time.Time]struct{}{},
	}
	registry.MustRegister(m.calls, m.seconds, m)
	return m
}

// start makes the metrics of a webhook visible before its first event.
func (m *metrics) start(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[name] = map[*time.Time]struct{}{}
	for _, result := range []string{delivered, failed, refused, expired} {
		m.calls.WithLabelValues(name, result)
	}
}

// forget drops the metrics of a webhook that was removed.
func (m *metrics) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, name)
	m.calls.DeletePartialMatch(prometheus.Labels{"webhook": name})
	m.seconds.DeletePartialMatch(prometheus.Labels{"webhook": name})
}

func (m *metrics) count(name, result string) { m.calls.WithLabelValues(name, result).Inc() }

func (m *metrics) took(name string, d time.Duration) {
	m.seconds.WithLabelValues(name).Observe(d.Seconds())
}

// begin counts an event as being sent, until the returned function is called.
func (m *metrics) begin(name string, at time.Time) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[name][&at] = struct{}{}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.open[name], &at)
	}
}

// Describe sends the description of the oldest gauge.
func (m *metrics) Describe(out chan<- *prometheus.Desc) { out <- m.oldest }

// Collect sends the age of the oldest event that is being sent, for each webhook.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, open := range m.open {
		oldest := 0.0
		for at := range open {
			oldest = max(oldest, time.Since(*at).Seconds())
		}
		out <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, oldest, name)
	}
}
