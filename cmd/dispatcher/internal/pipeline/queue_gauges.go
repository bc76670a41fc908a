package pipeline

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// queueGauges show what has not been sent yet, by lane, as this process last read it. All instances
// show the same.
type queueGauges struct {
	latest                    atomic.Pointer[[]queueGauge] // nil before the first look
	scheduled, paused, oldest *prometheus.Desc             // lane
}

var _ prometheus.Collector = (*queueGauges)(nil)

// queueGauge is what one lane shows.
type queueGauge struct {
	lane              string
	scheduled, paused int64
	oldest            time.Duration
}

func newQueueGauges(namespace, subsystem string) *queueGauges {
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(
			prometheus.BuildFQName(namespace, subsystem, name), help, []string{"lane"}, nil)
	}
	return &queueGauges{
		scheduled: gauge("scheduled_messages",
			"Messages whose send_at has not come, and those that quiet hours hold, by lane."),
		paused: gauge("paused_messages",
			"Messages that wait because they are paused, by lane."),
		oldest: gauge("oldest_waiting_seconds",
			"How long the oldest waiting message of a lane has waited, since its receipt or its later "+
				"send_at; 0 when none waits."),
	}
}

// queueStateOf has an entry for each lane of the routing, even if none of its messages wait.
func queueStateOf(
	queues []ledger.Queue, lanes map[string]decide.Lane, now time.Time,
) *[]queueGauge {
	all := make([]queueGauge, 0, len(lanes))
	for name := range lanes {
		g := queueGauge{lane: name}
		for i := range queues {
			q := &queues[i]
			if q.Lane != name {
				continue
			}
			g.scheduled, g.paused = q.Scheduled, q.Paused
			if q.Since != nil {
				g.oldest = max(now.Sub(*q.Since), 0)
			}
		}
		all = append(all, g)
	}
	return &all
}

// Describe lists the gauges.
func (g *queueGauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.scheduled
	out <- g.paused
	out <- g.oldest
}

// Collect shows the latest state.
func (g *queueGauges) Collect(out chan<- prometheus.Metric) {
	latest := g.latest.Load()
	if latest == nil {
		return
	}
	for _, q := range *latest {
		show := func(d *prometheus.Desc, v float64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, q.lane)
		}
		show(g.scheduled, float64(q.scheduled))
		show(g.paused, float64(q.paused))
		show(g.oldest, q.oldest.Seconds())
	}
}

// pausedLane shows whether a lane's topics are read, and why not.
func (m *Metrics) pausedLane(lane string, byOperator, full bool) {
	show := func(reason string, is bool) {
		value := 0.0
		if is {
			value = 1
		}
		m.paused.WithLabelValues(lane, reason).Set(value)
	}
	show("operator", byOperator)
	show("full", full)
}
