package kafka

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of requests to take messages, label result.
const (
	intakeAccepted    = "accepted"    // all messages are durable
	intakeRefused     = "refused"     // the lane or a message is invalid
	intakeUnconfirmed = "unconfirmed" // the brokers have not confirmed all messages
	intakeUnavailable = "unavailable" // the lanes are not known yet
)

// IntakeMetrics count what services hand over other than by Kafka.
type IntakeMetrics struct {
	requests *prometheus.CounterVec // result
	messages *prometheus.CounterVec // lane, of the routing document
	durable  prometheus.Histogram
}

// NewIntakeMetrics registers them.
func NewIntakeMetrics(registry prometheus.Registerer) *IntakeMetrics {
	const namespace, subsystem = "dispatcher", "intake"
	m := &IntakeMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_total",
			Help: "Requests to take messages, by result.",
		}, []string{"result"}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "messages_total",
			Help: "Messages that were accepted.",
		}, []string{"lane"}),
		durable: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "durable_seconds",
			Help:    "From the check of a request until its messages are durable.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}),
	}
	for _, result := range []string{
		intakeAccepted, intakeRefused, intakeUnconfirmed, intakeUnavailable,
	} {
		m.requests.WithLabelValues(result)
	}
	registry.MustRegister(m.requests, m.messages, m.durable)
	return m
}

// Refused counts an invalid request.
func (m *IntakeMetrics) Refused() { m.requests.WithLabelValues(intakeRefused).Inc() }

// Unavailable counts a request that could not be checked.
func (m *IntakeMetrics) Unavailable() { m.requests.WithLabelValues(intakeUnavailable).Inc() }

// Published counts a request whose messages went to the brokers: of is how many, confirmed how many
// of them the brokers have confirmed within took.
func (m *IntakeMetrics) Published(lane string, of, confirmed int, took time.Duration) {
	m.durable.Observe(took.Seconds())
	if confirmed < of {
		m.requests.WithLabelValues(intakeUnconfirmed).Inc()
		return
	}
	m.requests.WithLabelValues(intakeAccepted).Inc()
	m.messages.WithLabelValues(lane).Add(float64(of))
}
