package pipeline

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// limitGauges show the shared state of limits and channels as this process last read it. All
// instances show the same, except the share, which is that of this process.
//
// Labels are bounded by the routing document: its channels (empty for limits over all of them), the
// scopes that it names, windows and units. The label "on" is one of those channels and limits, or
// empty.
type limitGauges struct {
	latest atomic.Pointer[gaugeState] // nil before the first look

	// labels: channel, scope, window, unit
	most, effective, granted, free, reserved, share, end *prometheus.Desc
	active, rate                                         *prometheus.Desc // channel
	waiting                                              *prometheus.Desc // on, reason
	budgets                                              *prometheus.Desc // channel, scope, level
}

var _ prometheus.Collector = (*limitGauges)(nil)

// gaugeState is what the gauges show.
type gaugeState struct {
	limits   []limitGauge
	channels []channelGauges
	waiting  []ledger.Waiters
	budgets  map[budgetGauge]int
}

// budgetGauge holds the labels of one count of prepaid budgets: the limit of the document that they
// come from, and their admission.Level.
type budgetGauge struct{ channel, scope, level string }

type limitGauge struct {
	labels                                          []string
	most, effective, granted, free, reserved, share int64
	end                                             time.Time // of the current window
}

type channelGauges struct {
	name   string
	active int64
	rate   float64
}

func newLimitGauges(namespace, subsystem string) *limitGauges {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, labels, nil)
	}
	limit := func(name, help string) *prometheus.Desc {
		return gauge("limit_"+name, help, "channel", "scope", "window", "unit")
	}
	return &limitGauges{
		most: limit(
			"max", "Units that a limit allows in its current window, money in micros.",
		),
		effective: limit(
			"effective",
			"Units that a limit allows in each window at the channel's current rate.",
		),
		granted: limit("granted", "Units of a limit that were granted in the current window."),
		free: limit(
			"free",
			"Units of a limit that are left in the current window; "+
				"0 of a window of a second that begins in the future.",
		),
		reserved: limit(
			"reserved", "Units of a limit that are left and kept for lanes with a reserve.",
		),
		share: limit(
			"share",
			"Units of a limit that the channel's policy leaves to this instance in a whole window.",
		),
		end: limit(
			"window_end_timestamp_seconds",
			"When the current window of a limit ends and the next one begins, as a Unix time.",
		),
		active: gauge("channel_active", "Attempts in flight on a channel.", "channel"),
		rate: gauge(
			"channel_rate_ratio",
			"Current rate of a channel as part of its full rate: below 1 after its provider asked to slow "+
				"down, 0 during a pause, always 1 without a limit of a second.",
			"channel",
		),
		waiting: gauge(
			"waiting_for_messages",
			"Messages that wait, by the channel or limit that they wait for and why.", "on",
			"reason",
		),
		budgets: gauge(
			"budgets",
			"Prepaid budgets by how much of them is used: low from four fifths on. A budget of each "+
				"tenant is one per tenant.", "channel", "scope", "level",
		),
	}
}

// Describe lists the gauges.
func (g *limitGauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		g.most, g.effective, g.granted, g.free, g.reserved, g.share, g.end, g.active, g.rate, g.waiting,
		g.budgets,
	} {
		out <- d
	}
}

// Collect shows the latest state.
func (g *limitGauges) Collect(out chan<- prometheus.Metric) {
	s := g.latest.Load()
	if s == nil {
		return
	}
	show := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for i := range s.limits {
		l := &s.limits[i]
		for d, v := range map[*prometheus.Desc]int64{
			g.most: l.most, g.effective: l.effective, g.granted: l.granted, g.free: l.free,
			g.reserved: l.reserved, g.share: l.share,
		} {
			show(d, float64(v), l.labels...)
		}
		show(g.end, float64(l.end.Unix()), l.labels...)
	}
	for _, c := range s.channels {
		show(g.active, float64(c.active), c.name)
		show(g.rate, c.rate, c.name)
	}
	for _, w := range s.waiting {
		show(g.waiting, float64(w.Messages), w.On, w.Reason)
	}
	for b, n := range s.budgets {
		show(g.budgets, float64(n), b.channel, b.scope, b.level)
	}
}

// gaugeStateOf computes what the gauges show. It rolls the counters of p to p.Now.
func gaugeStateOf(
	p *ledger.Present, r *decide.Routing, instances *decide.Instances, region string,
) *gaugeState {
	s := &gaugeState{waiting: boundedWaiters(p.Waiting, r), budgets: map[budgetGauge]int{}}
	eases := make(map[string]admission.Ease, len(p.Channels))
	for i := range p.Channels {
		state := &p.Channels[i]
		ease := state.Gate.Ease
		eases[state.Name] = ease
		c, limits := r.Channel(state.Name), []admission.Limit(nil)
		if c >= 0 {
			limits = r.Channels[c].Limits
		}
		rate := ease.RateOf(limits, p.Now)
		if p.Now.Before(ease.Until) {
			rate = 0
		}
		s.channels = append(s.channels, channelGauges{state.Name, state.Gate.Active.Count, rate})
		if c < 0 {
			continue // the routing has changed since
		}
		for k := range state.Gate.Counters {
			l := limitGaugeOf(
				&state.Gate.Counters[k], r.Channels[c].Limits, state.Name, ease, p.Now, r.Zone,
			)
			if policy := r.Channels[c].Policy; decide.Divides(policy) &&
				state.Gate.Counters[k].Window != admission.Prepaid {
				whole := instances.State(state.Name, &state.Gate.Counters[k], region)
				l.share = policy.Split(&whole).PerWorker
			}
			s.limits = append(s.limits, l)
			s.count(&state.Gate.Counters[k], state.Name, r)
		}
	}
	for i := range p.Scoped {
		scoped := &p.Scoped[i]
		limits, ease := r.Limits, admission.Ease{} // limits over all channels are not throttled
		if c := r.Channel(scoped.Channel); c >= 0 {
			limits, ease = r.Channels[c].Limits, eases[scoped.Channel]
		}
		for k := range scoped.Counters {
			s.count(&scoped.Counters[k], scoped.Channel, r)
			if scoped.Scope.Tenant != "" && madeForTenant(limits, scoped.Counters[k].Key()) {
				continue // only scopes of the document become labels
			}
			s.limits = append(
				s.limits,
				limitGaugeOf(&scoped.Counters[k], limits, scoped.Channel, ease, p.Now, r.Zone),
			)
		}
	}
	return s
}

// count adds a counter to the budgets of its limit in the document. It sets the other levels too,
// so that no series disappears between two scrapes.
func (s *gaugeState) count(c *admission.Counter, channel string, r *decide.Routing) {
	if c.Window != admission.Prepaid || c.Scope.Each() {
		return
	}
	scope, own := r.DocumentedLimit(channel, c.Key()).Scope.String(), c.Level()
	for _, level := range admission.Levels {
		one := budgetGauge{channel, scope, string(level)}
		s.budgets[one] += 0
		if level == own {
			s.budgets[one]++
		}
	}
}

// madeForTenant reports whether a tenant's limit exists only because of a limit of each tenant.
func madeForTenant(limits []admission.Limit, k admission.Key) bool {
	return slices.ContainsFunc(limits, func(l admission.Limit) bool { return l.Scope.Each() }) &&
		!slices.ContainsFunc(limits, func(l admission.Limit) bool { return l.Key() == k })
}

// boundedWaiters adds up the waiting messages under the limits that the document names, so that a
// limit of each tenant gives one label and not one per tenant.
func boundedWaiters(waiting []ledger.Waiters, r *decide.Routing) []ledger.Waiters {
	type reason struct{ on, why string }
	at := make(map[reason]int, len(waiting))
	out := make([]ledger.Waiters, 0, len(waiting))
	for _, w := range waiting {
		if channel, k, ok := admission.ParseOn(w.On); ok {
			w.On = r.DocumentedLimit(channel, k).On(channel)
		}
		if i, known := at[reason{w.On, w.Reason}]; known {
			out[i].Messages += w.Messages
			if w.Next.Before(out[i].Next) {
				out[i].Next = w.Next
			}
			continue
		}
		at[reason{w.On, w.Reason}] = len(out)
		out = append(out, w)
	}
	return out
}

// limitGaugeOf is the gauge of one counter, without the share of this process.
func limitGaugeOf(
	c *admission.Counter, limits []admission.Limit, channel string, ease admission.Ease,
	now time.Time, zone *time.Location,
) limitGauge {
	decide.CompleteCounter(c, limits)
	c.Roll(now, zone)
	return limitGauge{
		labels: []string{channel, c.Scope.String(), c.Window.String(), c.Unit.String()},
		most:   c.Max, effective: c.Effective(ease, now), granted: c.Granted, free: c.FreeAt(now),
		reserved: c.Reserved(), share: c.Max,
		end: c.End(zone),
	}
}
