package scoring

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Where the answer to a question came from.
const (
	answeredByFunction = "function" // it was asked, whatever the result
	answeredByCache    = "cache"
	answeredByOther    = "joined" // an equal question was being asked
	answeredByPause    = "rest"   // it failed a moment ago and was not asked
	answeredByNobody   = "nobody" // its batch could not wait for its turn
)

// resultOK is the result of a call without trouble.
const resultOK = "ok"

// metrics count by route, which the routing document bounds, and by closed lists.
type metrics struct {
	calls     *prometheus.CounterVec   // route, result: ok or a word of Scores.Trouble
	questions *prometheus.CounterVec   // route, by: function cache joined rest nobody
	queue     *prometheus.HistogramVec // route
	seconds   *prometheus.HistogramVec // route
}

func newMetrics(registry prometheus.Registerer) *metrics {
	const namespace, subsystem = "dispatcher", "scoring"
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "calls_total",
			Help: "Calls of scoring functions by result.",
		}, []string{"route", "result"}),
		questions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "questions_total",
			Help: "Messages to be scored by a function, by where the answer came from.",
		}, []string{"route", "by"}),
		queue: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "queue_seconds",
			Help:    "How long a question waited until it was its turn to be asked.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}, []string{"route"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "seconds",
			Help:    "Duration of all calls about one message together.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}, []string{"route"}),
	}
	registry.MustRegister(m.calls, m.questions, m.queue, m.seconds)
	return m
}

func (m *metrics) called(route, word string) {
	if word == "" {
		word = resultOK
	}
	m.calls.WithLabelValues(route, word).Inc()
}

func (m *metrics) question(route, by string) { m.questions.WithLabelValues(route, by).Inc() }

func (m *metrics) queued(route string, took time.Duration) {
	m.queue.WithLabelValues(route).Observe(took.Seconds())
}

func (m *metrics) asked(route string, took time.Duration) {
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}
