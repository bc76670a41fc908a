package report

import (
	"maps"
	"slices"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// routeDay is what was agreed for one route on one day beside what came of it.
type routeDay struct {
	name     string
	channels []string                      // in the order of the newest version
	counts   map[string]int64              // first choices by channel
	total    int64                         // of counts
	expected map[string]float64            // first choices by channel, if the shares had been exact
	tried    map[string][]*ledger.DailyRow // by channel, one for each currency
}

// newRouteDay collects what the figures say of one route.
func newRouteDay(f *Figures, name string) *routeDay {
	d := &routeDay{name: name, counts: map[string]int64{}, tried: map[string][]*ledger.DailyRow{}}
	for _, c := range f.Choices {
		if c.Route == name {
			d.counts[c.Channel] += c.FirstChoice
			d.total += c.FirstChoice
			d.channels = append(d.channels, c.Channel)
		}
	}
	for i := range f.Rows {
		if r := &f.Rows[i]; r.Route == name {
			d.tried[r.Channel] = append(d.tried[r.Channel], r)
			d.channels = append(d.channels, r.Channel)
		}
	}
	d.expect(f)
	var order []string
	if route := routeNamed(f.Current, name); route != nil {
		for _, w := range route.Weights {
			order = append(order, w.Channel)
		}
	}
	d.channels = inOrder(slices.AppendSeq(d.channels, maps.Keys(d.expected)), order)
	return d
}

// expect adds up the shares of each routing version times the messages that were chosen
// under it. On a day without any it is the current shares themselves.
func (d *routeDay) expect(f *Figures) {
	if d.total == 0 {
		d.expected = shares(f.Current, d.name)
		return
	}
	d.expected = map[string]float64{}
	for _, c := range f.Choices {
		if c.Route != d.name {
			continue
		}
		for channel, part := range shares(f.Versions[c.Version], d.name) {
			d.expected[channel] += part * float64(c.FirstChoice)
		}
	}
}

// shares are the agreed shares of a route's channels, those of weight 0 included; nil
// when the document has no such route.
func shares(doc *config.Routing, route string) map[string]float64 {
	r := routeNamed(doc, route)
	if r == nil {
		return nil
	}
	table, err := selector.NewTable(r.Entries())
	if err != nil {
		return nil // a document with such weights was never applied
	}
	out := make(map[string]float64, table.Len())
	for _, iv := range intervals(table) {
		out[iv.Channel] = iv.Share
	}
	return out
}

func routeNamed(doc *config.Routing, name string) *config.Route {
	if doc == nil {
		return nil
	}
	at := slices.IndexFunc(doc.Routes, func(r config.Route) bool { return r.Name == name })
	if at < 0 {
		return nil
	}
	return &doc.Routes[at]
}

// judge tests the first choices of the route.
func (d *routeDay) judge() (p float64, verdict string) {
	if d.total == 0 {
		return 1, TooFew
	}
	counts, expected := make([]int64, len(d.channels)), make([]float64, len(d.channels))
	for i, c := range d.channels {
		counts[i], expected[i] = d.counts[c], d.expected[c]
	}
	return Judge(counts, expected)
}

// rows makes one row per channel, and one more for each further currency.
func (d *routeDay) rows() []DailyRow {
	p, verdict := d.judge()
	var out []DailyRow
	for _, channel := range d.channels {
		first := DailyRow{Route: d.name, Channel: channel, FirstChoice: d.counts[channel], ConfiguredShare: d.expected[channel]}
		if d.total > 0 {
			first.ConfiguredShare = d.expected[channel] / float64(d.total)
			first.FirstChoiceShare = float64(first.FirstChoice) / float64(d.total)
			first.Deviation = first.FirstChoiceShare - first.ConfiguredShare
		}
		at := len(out)
		out = append(out, first)
		for i, tried := range d.tried[channel] {
			if i > 0 {
				out = append(out, DailyRow{Route: d.name, Channel: channel})
			}
			out[at+i].fill(tried)
		}
	}
	for i := range out {
		out[i].PValue, out[i].Verdict = p, verdict
	}
	return out
}

// fill copies what the attempts came to.
func (r *DailyRow) fill(from *ledger.DailyRow) {
	r.Fallback, r.Submitted, r.Accepted, r.Delivered = from.Fallback, from.Submitted, from.Accepted, from.Delivered
	r.Failed, r.Unknown = from.Failed(), from.Unknown
	r.Segments, r.CostMicros, r.Currency = from.Segments, from.CostMicros, from.Currency
	r.UnknownSegments, r.UnknownMicros = from.UnknownSegments, from.UnknownMicros
}
