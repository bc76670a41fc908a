package steer

import (
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/config"
)

// metrics are labelled by routes and channels, which the routing document bounds, and by kind:
// ramp_step ramp_hold ramp_supersede health_down health_up.
type metrics struct {
	share   *prometheus.GaugeVec   // route, channel
	agreed  *prometheus.GaugeVec   // route, channel
	carried *prometheus.GaugeVec   // route, channel
	moves   *prometheus.CounterVec // kind
	trips   *prometheus.CounterVec // per: tenant calling_code prefix; action: pause warn
}

func newMetrics(registry prometheus.Registerer) *metrics {
	const namespace, subsystem = "dispatcher", "steer"
	m := &metrics{
		share: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "effective_share",
			Help: "Part of a route's draws that each of its channels gets, from 0 to 1.",
		}, []string{"route", "channel"}),
		agreed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "agreed_share",
			Help: "Part of a route's draws that each of its channels gets by the weights of the " +
				"document, from 0 to 1.",
		}, []string{"route", "channel"}),
		carried: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "carried_share",
			Help: "Part of a route's accepted messages of the last five minutes that each of its " +
				"channels carried, over all instances, from 0 to 1.",
		}, []string{"route", "channel"}),
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "moves_total",
			Help: "Changes of weights and ramps that this process made by itself.",
		}, []string{"kind"}),
		trips: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "guard_trips_total",
			Help: "Trips of guards that this process was the first to record.",
		}, []string{"per", "action"}),
	}
	registry.MustRegister(m.share, m.agreed, m.carried, m.moves, m.trips)
	for _, per := range []config.GuardBy{config.ByTenant, config.ByCallingCode, config.ByPrefix} {
		for _, action := range []config.GuardAction{config.GuardPauses, config.GuardWarns} {
			// Start at 0: rate() misses an increase to 1 from nothing.
			m.trips.WithLabelValues(string(per), string(action))
		}
	}
	return m
}

// shares sets the gauges to the effective and configured weights of the current routing. Channels
// and routes that are gone lose theirs.
func (m *metrics) shares(doc *config.Routing) {
	m.share.Reset()
	m.agreed.Reset()
	for i := range doc.Routes {
		route := &doc.Routes[i]
		var effective, configured float64
		for _, w := range route.Weights {
			effective += w.Weight.Float()
			configured += w.Configured.Float()
		}
		for _, w := range route.Weights {
			m.share.WithLabelValues(route.Name, w.Channel).Set(w.Weight.Float() / effective)
			m.agreed.WithLabelValues(route.Name, w.Channel).Set(w.Configured.Float() / configured)
		}
	}
}

func (m *metrics) moved(kind string) { m.moves.WithLabelValues(kind).Inc() }
