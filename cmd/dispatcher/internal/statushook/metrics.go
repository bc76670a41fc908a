package statushook

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of deliveries, label result.
const (
	delivered = "delivered" // the receiver took the event
	failed    = "failed"    // it did not, and the call is made again
	refused   = "refused"   // it never will; the event is left out
	expired   = "expired"   // the event was older than max_age; it is left out
)

// metrics are labelled by the name of the webhook, which the file has.
type metrics struct {
	calls   *prometheus.CounterVec   // webhook, result
	seconds *prometheus.HistogramVec // webhook
	oldest  *prometheus.Desc         // webhook

	mu   sync.Mutex
	open map[string]map[*time.Time]struct{} // guarded by mu: by webhook, times of events under way
}

func newMetrics(registry prometheus.Registerer) *metrics {
	const namespace, subsystem = "dispatcher", "statushook"
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "events_total",
			Help: "Status events and calls of webhooks, by what came of them.",
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

// start lets a webhook be seen before its first event.
func (m *metrics) start(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[name] = map[*time.Time]struct{}{}
	for _, result := range []string{delivered, failed, refused, expired} {
		m.calls.WithLabelValues(name, result)
	}
}

// forget drops a webhook that there is no more.
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

// begin notes an event that is being sent until the function that it returns is called.
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

// Describe is that of the gauge of ages.
func (m *metrics) Describe(out chan<- *prometheus.Desc) { out <- m.oldest }

// Collect looks at what is being sent.
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
