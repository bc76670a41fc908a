package inbound

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/ledger"
)

// metrics are labelled by channels, which the routing document bounds, and by words: result is
// taken or refused, keyword is stop, start or none.
type metrics struct {
	arrived    *prometheus.CounterVec // channel, result
	messages   *prometheus.CounterVec // channel, keyword
	repeated   prometheus.Counter
	incomplete prometheus.Counter
	changes    *prometheus.CounterVec // keyword
	seconds    prometheus.Histogram
}

func newMetrics(registry prometheus.Registerer) *metrics {
	name := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{
			Namespace: "dispatcher", Subsystem: "inbound", Name: name,
			Help: help,
		}
	}
	m := &metrics{
		arrived: prometheus.NewCounterVec(name("arrived_total",
			"Messages and parts of subscribers that channels brought."), []string{
			"channel",
			"result",
		}),
		messages: prometheus.NewCounterVec(name("messages_total",
			"Whole messages of subscribers that were published."), []string{"channel", "keyword"}),
		repeated: prometheus.NewCounter(name("repeated_total",
			"Messages and parts that had been recorded before.")),
		incomplete: prometheus.NewCounter(name("incomplete_total",
			"Messages that were published without some of their parts.")),
		changes: prometheus.NewCounterVec(name("opt_out_changes_total",
			"Subscribers that a keyword put on an opt-out list or took off one."),
			[]string{"keyword"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "dispatcher", Subsystem: "inbound", Name: "booking_seconds",
			Help:    "Transactions that record messages of subscribers.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}),
	}
	registry.MustRegister(m.arrived, m.messages, m.repeated, m.incomplete, m.changes, m.seconds)
	return m
}

func (m *metrics) taken(channel string, n int) {
	m.arrived.WithLabelValues(channel, "taken").Add(float64(n))
}

func (m *metrics) refused(channel string, n int) {
	m.arrived.WithLabelValues(channel, "refused").Add(float64(n))
}

// messageLabels holds the labels of one message.
type messageLabels struct{ channel, keyword string }

func newMessageLabels(m *ledger.Subscribed, r *ledger.Reaction) messageLabels {
	keyword := keywords[r.Change]
	if keyword == "" {
		keyword = "none"
	}
	return messageLabels{m.Channel, keyword}
}

func (m *metrics) recorded(b *ledger.InboxResult, of []messageLabels, took time.Duration) {
	m.seconds.Observe(took.Seconds())
	for _, h := range of {
		m.messages.WithLabelValues(h.channel, h.keyword).Inc()
	}
	m.repeated.Add(float64(b.Repeated))
	m.incomplete.Add(float64(b.Abandoned))
	m.changes.WithLabelValues(keywords[ledger.OptOut]).Add(float64(b.OptedOut))
	m.changes.WithLabelValues(keywords[ledger.OptIn]).Add(float64(b.OptedIn))
}
