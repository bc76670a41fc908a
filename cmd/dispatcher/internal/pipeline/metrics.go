package pipeline

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// Metrics are the pipeline's metrics. Label values are bounded: lanes and channels come from the
// routing document; states, outcomes and reasons are closed lists. No label is a number, a text or
// an id.
type Metrics struct {
	records      *prometheus.CounterVec   // lane, result: fresh duplicate conflict dead
	decisions    *prometheus.CounterVec   // lane, state: sending waiting failed
	choices      *prometheus.CounterVec   // channel, reason: first_choice fallback retry resend
	passedOver   *prometheus.CounterVec   // reason a message waits or failed
	full         *prometheus.CounterVec   // channel, reason: bulkhead in_flight
	unanswered   *prometheus.GaugeVec     // channel
	ready        *prometheus.GaugeVec     // channel
	scoring      *prometheus.CounterVec   // trouble: expression_failed and the words of Scores.Trouble
	outcomes     *prometheus.CounterVec   // channel, outcome
	answer       *prometheus.HistogramVec // channel
	toSubmit     *prometheus.HistogramVec // lane
	unsent       *prometheus.CounterVec   // channel, code: late stale stopping expired
	claimSeconds prometheus.Histogram
	lockWait     prometheus.Histogram
	claimSize    prometheus.Histogram
	settle       prometheus.Histogram
	trouble      *prometheus.CounterVec // where
	ambiguities  *prometheus.CounterVec // verdict: taken not_taken resent final
	waiting      *prometheus.GaugeVec   // lane
	paused       *prometheus.GaugeVec   // lane, reason: operator full
	queues       *queueGauges
	version      prometheus.Gauge
	codes        *prometheus.CounterVec // channel, outcome, code: see codeLabels
	codeLabels   *codeLabels
	limits       *limitGauges
	lost         prometheus.Counter
	released     prometheus.Counter
}

const namespace, subsystem = "dispatcher", "dispatch"

// NewMetrics registers the pipeline's metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{}
	m.countMessages()
	m.countAttempts()
	m.measureDatabase()
	m.showState()
	registry.MustRegister(
		m.limits, m.records, m.decisions, m.choices, m.passedOver, m.full, m.unanswered, m.ready,
		m.scoring,
		m.outcomes, m.answer, m.toSubmit, m.unsent, m.claimSeconds, m.lockWait, m.claimSize,
		m.settle, m.trouble, m.ambiguities, m.waiting, m.paused, m.queues, m.version, m.codes,
		m.lost, m.released,
	)
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: subsystem, Name: name, Help: help,
	}, labels)
}

// seconds is a histogram of durations, from a millisecond to half a minute.
func seconds(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Subsystem: subsystem, Name: name, Help: help,
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
	}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: buckets,
	})
}

// countMessages counts what became of records and messages.
func (m *Metrics) countMessages() {
	m.records = counter("records_total", "Kafka records by result.", "lane", "result")
	m.decisions = counter(
		"decisions_total", "Decisions of claims by the state they led to.", "lane", "state",
	)
	m.choices = counter(
		"attempts_total", "Attempts by channel and why they went there.", "channel", "reason",
	)
	m.passedOver = counter(
		"passed_over_total", "Messages that had to wait or failed, by reason.", "reason",
	)
	m.full = counter(
		"full_channels_total",
		"Times that a message found a channel at its in-flight bound in this process, by reason.",
		"channel", "reason",
	)
	m.scoring = counter(
		"scoring_fallbacks_total",
		"Rankings that the default scoring made because the route's rule failed.", "trouble",
	)
	m.toSubmit = seconds(
		"submit_delay_seconds",
		"From the Kafka record's timestamp, or its later send_at, to its first submit.", "lane",
	)
}

// countAttempts counts attempts and their answers.
func (m *Metrics) countAttempts() {
	m.outcomes = counter(
		"outcomes_total", "Attempts by channel and outcome.", "channel", "outcome",
	)
	m.codes = counter(
		"codes_total", "Attempts that were answered and not accepted, by the provider's code.",
		"channel", "outcome", "code",
	)
	m.codeLabels = newCodeLabels()
	m.answer = seconds("answer_seconds", "From submit to the provider's answer.", "channel")
	m.unsent = counter(
		"unsent_attempts_total",
		"Attempts that did not leave: release time missed, stale, or the channel was stopped.",
		"channel", "code",
	)
	m.unanswered = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "unanswered_attempts",
		Help: "Attempts that this instance has claimed and that are not answered, by channel.",
	}, []string{"channel"})
	m.ready = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "channel_ready",
		Help: "1 while this instance can send on an enabled channel, else 0. A channel that is busy, " +
			"throttled or probed counts as ready.",
	}, []string{"channel"})
	m.ambiguities = counter(
		"ambiguities_total", "Submissions that nobody answered, by how the search ended.",
		"verdict",
	)
	m.lost = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "recovered_attempts_total",
		Help: "Attempts of lost instances that this one closed as unknown.",
	})
	m.released = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "released_slots_total",
		Help: "Active slots of dead instances, and held ones whose time was over, that this instance " +
			"gave back.",
	})
}

// measureDatabase measures the transactions of claims and settlements.
func (m *Metrics) measureDatabase() {
	m.claimSeconds = histogram(
		"claim_seconds", "Duration of a claim transaction, lock waits included.",
		prometheus.ExponentialBuckets(0.001, 2, 14),
	)
	m.lockWait = histogram(
		"claim_lock_wait_seconds",
		"Part of a claim that waited for the locks of channels and limits.",
		prometheus.ExponentialBuckets(0.0001, 2, 18),
	)
	m.claimSize = histogram(
		"claim_messages", "Messages per claim.", prometheus.ExponentialBuckets(1, 2, 11),
	)
	m.settle = histogram(
		"settle_seconds", "Duration of a settle transaction.",
		prometheus.ExponentialBuckets(0.001, 2, 14),
	)
	m.trouble = counter("trouble_total", "Operations that failed and are tried again.", "where")
}

// showState shows what waits, what is paused and which routing is in force.
func (m *Metrics) showState() {
	m.waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "waiting_messages",
		Help: "Messages that wait for a channel, by lane, over all instances.",
	}, []string{"lane"})
	m.paused = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "lane_paused",
		Help: "1 while this instance does not read a lane's topics: it is paused, " +
			"or too many of its messages wait.",
	}, []string{"lane", "reason"})
	m.queues = newQueueGauges(namespace, subsystem)
	m.limits = newLimitGauges(namespace, subsystem)
	m.version = prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "routing_version",
		Help: "Version of the routing that this instance uses.",
	})
}

// begin shows the counters of the lanes and channels of a routing before anything is counted.
// increase() and rate() miss the first increase of a counter that comes out of nothing.
func (m *Metrics) begin(routing *decide.Routing) {
	for _, verdict := range []ledger.ResolvedAs{
		ledger.Taken, ledger.NotTaken, ledger.Resent, ledger.Unresolved,
	} {
		m.ambiguities.WithLabelValues(string(verdict))
	}
	for lane := range routing.Lanes {
		for _, result := range []string{"fresh", "duplicate", "conflict", "dead"} {
			m.records.WithLabelValues(lane, result)
		}
		m.toSubmit.WithLabelValues(lane)
	}
	for i := range routing.Channels {
		channel := routing.Channels[i].Name
		for _, reason := range []ledger.AttemptReason{
			ledger.ByFirstChoice, ledger.ByFallback, ledger.ByRetry, ledger.ByResend,
			ledger.ByNoReceipt,
		} {
			m.choices.WithLabelValues(channel, string(reason))
		}
		for _, outcome := range []provider.Outcome{
			provider.Unknown, provider.Accepted, provider.Rejected, provider.Refused,
			provider.Throttled,
		} {
			m.outcomes.WithLabelValues(channel, outcome.String())
		}
		m.outcomes.WithLabelValues(channel, unfit)
		m.answer.WithLabelValues(channel)
	}
}

// unfit is the outcome of refused attempts whose message is at fault.
const unfit = "unfit"

// claimed counts what a committed claim did.
func (m *Metrics) claimed(cl *claim, took, lockWait time.Duration) {
	m.claimSeconds.Observe(took.Seconds())
	m.lockWait.Observe(lockWait.Seconds())
	m.claimSize.Observe(float64(len(cl.decided.Tasks)))
	for trouble, n := range cl.decided.Troubles {
		m.scoring.WithLabelValues(trouble).Add(float64(n))
	}
	for c, n := range cl.decided.Full {
		if n > 0 {
			m.full.WithLabelValues(cl.plan.Routing.Channels[c].Name, cl.rooms[c].Reason()).
				Add(float64(n))
		}
	}
	records, decisions, choices := tally{of: m.records}, tally{of: m.decisions}, tally{of: m.choices}
	for i := range cl.decided.Tasks {
		t, d, intake := &cl.decided.Tasks[i], &cl.decided.Decisions[i], cl.decided.Intakes[i]
		switch {
		case intake == ledger.Duplicate:
			records.add(t.Row.Lane, "duplicate")
		case intake == ledger.Conflict:
			records.add(t.Row.Lane, "conflict")
		case intake == ledger.Fresh && t.Row.State == ledger.Dead:
			records.add(t.Row.Lane, "dead")
		case intake == ledger.Fresh:
			records.add(t.Row.Lane, "fresh")
		}
		if d.State == "" {
			if t.Row.State == ledger.Rejected &&
				intake == ledger.Fresh { // rejected when it was planned
				decisions.add(t.Row.Lane, string(ledger.Rejected))
				m.passedOver.WithLabelValues(t.Row.Reason).Inc()
			}
			continue
		}
		decisions.add(t.Row.Lane, string(d.State))
		if d.State == ledger.Sending {
			choices.add(d.Attempt.Channel, string(d.Attempt.Reason))
		} else if d.State != ledger.Accepted {
			m.passedOver.WithLabelValues(d.Reason).Inc()
		}
	}
	for _, t := range []*tally{&records, &decisions, &choices} {
		t.count()
	}
}

// tally adds up what a claim counts by two labels, because finding the counter of two labels costs
// more than counting. A claim has few different ones.
type tally struct {
	of    *prometheus.CounterVec
	pairs []labelPair
}

type labelPair struct {
	first, second string
	n             int
}

func (t *tally) add(first, second string) {
	for i := range t.pairs {
		if p := &t.pairs[i]; p.first == first && p.second == second {
			p.n++
			return
		}
	}
	t.pairs = append(t.pairs, labelPair{first, second, 1})
}

func (t *tally) count() {
	for _, p := range t.pairs {
		t.of.WithLabelValues(p.first, p.second).Add(float64(p.n))
	}
}

// untilSubmit observes how long a message took until its first submit.
func (m *Metrics) untilSubmit(a *openAttempt, now time.Time) {
	if a.Submission.Attempt == 1 {
		m.toSubmit.WithLabelValues(a.Lane).Observe(now.Sub(a.Since).Seconds())
	}
}

// channelMetrics are what each answer of a channel counts, found once.
type channelMetrics struct {
	*Metrics
	name     string
	accepted prometheus.Counter
	answer   prometheus.Observer
}

func (m *Metrics) channel(name string) channelMetrics {
	return channelMetrics{
		Metrics: m, name: name, answer: m.answer.WithLabelValues(name),
		accepted: m.outcomes.WithLabelValues(name, provider.Accepted.String()),
	}
}

// answered counts an outcome.
func (m *channelMetrics) answered(result *provider.Result, took time.Duration) {
	m.answer.Observe(took.Seconds())
	switch {
	case result.Unfit:
		m.outcomes.WithLabelValues(m.name, unfit).Inc()
	case result.Outcome == provider.Accepted:
		m.accepted.Inc()
	default:
		m.outcomes.WithLabelValues(m.name, result.Outcome.String()).Inc()
	}
	m.coded(m.name, result)
}
