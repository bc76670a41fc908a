package pages

import (
	"html/template"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
)

// overviewPage is the start page of operators.
type overviewPage struct {
	*status.Now
	Rate float64 // attempts a second over the last full interval
	Lag  *int64  // of all lanes; nil when that of one is not known
	// Messages that wait, that a pause holds, and whose time has not come.
	Queued, Held, Scheduled int64

	Chart    template.HTML
	Routes   []routeNow
	Limits   *limitTable
	Channels []status.Detail
}

// routeNow is what a route drew and carried recently.
type routeNow struct {
	Name, Mode string
	Match      string
	Rules      []string // sentences
	Fallback   string
	Paused     bool
	Channels   []channelNow
	Ramp       *rampNow
}

// channelNow is one channel of a route. A share is nil when there is nothing to count.
type channelNow struct {
	Name, Weight, Configured string
	Agreed, Drawn, Carried   *float64
	FirstChoice, Accepted    int64
}

func (s *Server) overviewNow(r *request) (any, error) {
	now, err := s.facts.read(r.Context())
	if err != nil {
		return nil, err
	}
	p := &overviewPage{Now: now.status, Routes: routesOf(now), Channels: now.channels}
	p.Limits, p.Lag = newLimitTable(now.doc, now.limits, ""), lagOf(now.status.Lanes)
	for i := range now.status.Lanes {
		lane := &now.status.Lanes[i]
		p.Queued, p.Held = p.Queued+lane.Waiting, p.Held+lane.Held
		p.Scheduled += lane.Scheduled
	}
	last := now.status.Now.Truncate(chartInterval).Add(-chartInterval)
	for _, t := range now.throughput {
		if t.At.Equal(last) {
			p.Rate += float64(t.Attempts) / chartInterval.Seconds()
		}
	}
	p.Chart, err = throughputChart(now.throughput, now.doc.ChannelNames(), now.status.Now,
		chartWithin, chartInterval)
	return p, err
}

// lagOf adds up the lag of all lanes. It is nil when that of one is not known: the sum would be too
// small, and 0 while Kafka is away.
func lagOf(lanes []status.Lane) *int64 {
	var sum int64
	for i := range lanes {
		if lanes[i].Lag == nil {
			return nil
		}
		sum += *lanes[i].Lag
	}
	return &sum
}

// LagHigh reports whether the lag is shown as a warning: it is large, or not known.
func (p *overviewPage) LagHigh() bool { return p.Lag == nil || *p.Lag >= 10_000 }

// routesOf returns the routes in the order of the document.
func routesOf(now *snapshot) []routeNow {
	routes := make([]routeNow, 0, len(now.doc.Routes))
	for i := range now.doc.Routes {
		routes = append(routes, routeOf(now, &now.doc.Routes[i]))
	}
	return routes
}

func routeOf(now *snapshot, route *config.Route) routeNow {
	out := routeNow{
		Name: route.Name, Mode: string(route.Mode), Fallback: string(route.Fallback),
		Match: matchWords(&route.Match), Rules: ruleWords(route),
		Paused: now.doc.Paused.Route(route.Name),
	}
	for i := range now.ramps {
		if now.ramps[i].Route == route.Name {
			out.Ramp = newRampNow(&now.ramps[i])
		}
	}
	agreed := report.Shares(now.doc, route.Name)
	var drawn, accepted int64
	for _, c := range now.carried[route.Name] {
		drawn, accepted = drawn+c.FirstChoice, accepted+c.Accepted
	}
	for _, name := range route.Channels {
		c := channelNow{Name: name}
		for _, w := range route.Weights {
			if w.Channel == name {
				c.Weight, c.Configured = w.Weight.String(), w.Configured.String()
			}
		}
		if share, ok := agreed[name]; ok {
			c.Agreed = &share
		}
		for _, counted := range now.carried[route.Name] {
			if counted.Channel == name {
				c.FirstChoice, c.Accepted = counted.FirstChoice, counted.Accepted
			}
		}
		if c.Carried = partOfAll(c.Accepted, accepted); route.Weights != nil {
			c.Drawn = partOfAll(c.FirstChoice, drawn)
		}
		out.Channels = append(out.Channels, c)
	}
	return out
}

// partOfAll is n / of; nil when of is 0.
func partOfAll(n, of int64) *float64 {
	if of == 0 {
		return nil
	}
	return new(float64(n) / float64(of))
}
