package app

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

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
