package app

import (
	"context"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/console"
	"dispatcher/cmd/dispatcher/internal/kafka"
)

// newBuildInfo shows which build runs.
func newBuildInfo(version string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "dispatcher", Name: "build_info",
		Help:        "The build that runs; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	info.Set(1)
	return info
}

// readyGauge shows the vital conditions of /readyz, so that an alert can name the one that is not
// met.
type readyGauge struct {
	checks func(context.Context) []console.Check
	met    *prometheus.Desc // check
}

var _ prometheus.Collector = (*readyGauge)(nil)

func newReadyGauge(checks func(context.Context) []console.Check) *readyGauge {
	return &readyGauge{checks: checks, met: prometheus.NewDesc("dispatcher_ready",
		"1 while this instance meets a vital condition of /readyz.", []string{"check"}, nil)}
}

// Describe lists the gauge.
func (g *readyGauge) Describe(out chan<- *prometheus.Desc) { out <- g.met }

// Collect waits for the database no longer than a probe of it does, so that a scrape ends in time.
func (g *readyGauge) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
	defer cancel()
	for _, check := range g.checks(ctx) {
		if !check.Vital {
			continue
		}
		met := 0.0
		if check.OK {
			met = 1
		}
		out <- prometheus.MustNewConstMetric(g.met, prometheus.GaugeValue, met, check.Name)
	}
}

// consumerGauges show the intake of this process, by lane.
type consumerGauges struct {
	state       func() []kafka.LaneState // none before the consumer starts
	lag, joined *prometheus.Desc         // lane
}

var _ prometheus.Collector = (*consumerGauges)(nil)

func newConsumerGauges(state func() []kafka.LaneState) *consumerGauges {
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("dispatcher", "consumer", name), help,
			[]string{"lane"}, nil)
	}
	return &consumerGauges{
		state: state,
		lag: gauge("lag_records", "Records of this instance's partitions that are not in the "+
			"ledger yet; absent while Kafka does not say."),
		joined: gauge("joined", "1 while this instance is in the consumer group of a lane."),
	}
}

// Describe lists the gauges.
func (g *consumerGauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.lag
	out <- g.joined
}

// Collect asks the consumer, which asks no broker.
func (g *consumerGauges) Collect(out chan<- prometheus.Metric) {
	for _, lane := range g.state() {
		joined := 0.0
		if lane.Joined {
			joined = 1
		}
		out <- prometheus.MustNewConstMetric(g.joined, prometheus.GaugeValue, joined, lane.Lane)
		if lane.Lag != nil {
			out <- prometheus.MustNewConstMetric(
				g.lag, prometheus.GaugeValue, float64(*lane.Lag), lane.Lane)
		}
	}
}

// lanes is the state of each lane's intake; none before the consumer starts.
func (r *readiness) lanes() []kafka.LaneState {
	if c := r.consumer.Load(); c != nil {
		return c.State()
	}
	return nil
}
