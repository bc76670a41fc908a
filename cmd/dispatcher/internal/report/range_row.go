package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"dispatcher/ledger"
)

// rangeKey has the values of the dimensions that were asked for.
type rangeKey struct {
	hour                                    int
	route, channel, tenant, country, sender string
}

// rangeGroup has the figures of one key.
type rangeGroup struct {
	key rangeKey
	// messages has the figures without a currency: verdicts, first choices, carried messages, shares
	// and moves.
	messages DailyRow
	// lines are the attempts by currency, and by reason if the report is by reason.
	lines      []*ledger.DailyRow
	billed     quantity // for the first choices, by any channel; only its costs
	waterfalls []Waterfall
	// drawn counts drawn messages, agreed and effective are the expected ones by each kind of share.
	// carried counts carried messages whose first choice was drawn, agreedCarried the expected ones.
	drawn, agreed, effective, carried, agreedCarried float64
}

// rows returns the rows of one period.
func (f *RangeFigures) rows(
	period RangePeriod, parts []*ledger.PartFigures, whole *Figures,
) (out []RangeRow) {
	groups := map[rangeKey]*rangeGroup{}
	byTime := map[string]map[string]float64{} // by route
	for _, same := range f.merged(parts) {
		figures, part := f.figures(same...), f.asked(same[0].Part)
		for _, name := range figures.routes() {
			route := newRouteDay(figures, name)
			var verdict RouteVerdict // no row shows it without these dimensions
			if f.by(ByRoute) || f.by(ByChannel) {
				verdict = route.verdict()
			}
			for _, channel := range route.channels {
				key := f.key(&part, name, channel)
				if groups[key] == nil {
					groups[key] = &rangeGroup{key: key, messages: DailyRow{Moved: []Move{}}}
				}
				groups[key].add(f, route, channel, &verdict)
			}
			if _, known := byTime[name]; !known && f.asDaily() && !f.by(ByHour) {
				byTime[name] = whole.agreedByTime(name)
			}
		}
	}
	for _, g := range groups {
		if shares := byTime[g.key.route]; shares != nil {
			g.messages.AgreedShareByTime = new(shares[g.key.channel])
		}
		if sums := SumWaterfalls(g.waterfalls); len(sums) == 1 {
			g.messages.Waterfall = &sums[0]
		}
	}
	order := f.sorted(slices.Collect(maps.Values(groups)))
	f.share(order)
	for _, g := range order {
		for _, row := range g.rows() {
			row.RangePeriod = period
			if f.by(ByHour) {
				row.Hour = new(g.key.hour)
			}
			out = append(out, row)
		}
	}
	f.shareAmounts(out)
	return out
}

func (f *RangeFigures) by(d Dimension) bool { return slices.Contains(f.By, d) }

// key is the key of a channel of a route.
func (f *RangeFigures) key(p *ledger.Part, route, channel string) (k rangeKey) {
	for _, d := range f.By {
		switch d {
		case ByHour:
			k.hour = int(p.Hour)
		case ByRoute:
			k.route = route
		case ByChannel:
			k.channel = channel
		case ByTenant:
			k.tenant = p.Tenant
		case ByCountry:
			if p.CallingCode > 0 {
				k.country = fmt.Sprintf("+%d", p.CallingCode)
			}
		case BySender:
			k.sender = p.Sender
		case ByCurrency, ByReason: // these distinguish the lines of a group
		}
	}
	return k
}

// last is the last dimension other than currency and reason, which messages do not have.
func (f *RangeFigures) last() Dimension {
	for _, d := range slices.Backward(f.By) {
		if d != ByCurrency && d != ByReason {
			return d
		}
	}
	return ""
}

// asDaily reports whether shares are those of channels on a route, as in the daily report.
func (f *RangeFigures) asDaily() bool { return f.by(ByRoute) && f.last() == ByChannel }

// add adds the figures of a channel of a route.
func (g *rangeGroup) add(f *RangeFigures, route *routeDay, channel string, v *RouteVerdict) {
	for _, tried := range route.tried[channel] {
		at := slices.IndexFunc(g.lines, func(l *ledger.DailyRow) bool {
			return l.Currency == tried.Currency && l.Reason == tried.Reason
		})
		if at < 0 {
			g.lines = append(g.lines, tried)
		} else {
			g.lines[at].Add(tried)
		}
	}
	m, row := &g.messages, route.row(channel)
	m.FirstChoice += row.FirstChoice
	m.Carried += row.Carried
	m.FirstChoiceSegments += row.FirstChoiceSegments
	g.billed = g.billed.plus(&quantity{costs: route.billed[channel]})
	if f.by(ByRoute) {
		m.assess(v)
	}
	if f.by(ByChannel) {
		for _, moved := range row.Moved {
			m.Moved = addMove(m.Moved, moved)
		}
		if w := waterfallOf(v.Waterfall, channel); w != nil {
			g.waterfalls = append(g.waterfalls, *w)
		}
	}
	if f.asDaily() {
		m.ConfiguredShare, m.EffectiveShare = row.ConfiguredShare, row.EffectiveShare
		m.AgreedShare, m.Deviation = row.AgreedShare, row.Deviation
	}
	g.drawn += float64(route.drawn.counts[channel])
	g.agreed += route.drawn.agreed[channel]
	g.effective += route.drawn.effective[channel]
	g.carried += float64(route.traffic.counts[channel])
	g.agreedCarried += route.traffic.agreed[channel]
}

// rows returns a row for each line; the first also has the figures without a currency.
func (g *rangeGroup) rows() (out []RangeRow) {
	slices.SortStableFunc(g.lines, func(a, b *ledger.DailyRow) int {
		return cmp.Or(cmp.Compare(a.Currency, b.Currency), byReason(a.Reason, b.Reason))
	})
	for i, daily := range byCurrency(g.messages, g.lines, g.billed.costs) {
		if i > 0 {
			m := &g.messages
			daily.PValue, daily.Verdict = m.PValue, m.Verdict
			daily.DrawsVerdict, daily.TrafficVerdict = m.DrawsVerdict, m.TrafficVerdict
		}
		daily.Route, daily.Channel = g.key.route, g.key.channel
		out = append(out, RangeRow{
			Tenant: g.key.tenant, Country: g.key.country, Sender: g.key.sender,
			Reason: daily.Reason, DailyRow: *daily,
		})
	}
	return out
}

// sorted sorts groups by the dimensions in the order asked for. Routes and channels are in the
// order of the current routing, then others by name.
func (f *RangeFigures) sorted(groups []*rangeGroup) []*rangeGroup {
	var routes, channels, routeOrder, channelOrder []string
	if f.Current != nil {
		routeOrder, channelOrder = f.Current.RouteNames(), f.Current.ChannelNames()
	}
	for _, g := range groups {
		routes, channels = append(routes, g.key.route), append(channels, g.key.channel)
	}
	routes, channels = inOrder(routes, routeOrder), inOrder(channels, channelOrder)
	slices.SortFunc(groups, func(a, b *rangeGroup) int {
		for _, d := range f.By {
			x := 0
			switch d {
			case ByHour:
				x = cmp.Compare(a.key.hour, b.key.hour)
			case ByRoute:
				x = cmp.Compare(slices.Index(routes, a.key.route), slices.Index(routes, b.key.route))
			case ByChannel:
				x = f.compareChannels(channels, &a.key, &b.key)
			case ByTenant:
				x = cmp.Compare(a.key.tenant, b.key.tenant)
			case ByCountry:
				x = cmp.Compare(a.key.country, b.key.country)
			case BySender:
				x = cmp.Compare(a.key.sender, b.key.sender)
			case ByCurrency, ByReason:
			}
			if x != 0 {
				return x
			}
		}
		return 0
	})
	return groups
}

// compareChannels compares by the order of the route if both keys have the same route, as in the
// daily report, else by that of the document.
func (f *RangeFigures) compareChannels(channels []string, a, b *rangeKey) int {
	if route := f.Current.Route(a.route); route != nil && a.route == b.route {
		channels = inOrder(channels, route.Channels)
	}
	return cmp.Compare(slices.Index(channels, a.channel), slices.Index(channels, b.channel))
}
