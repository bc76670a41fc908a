package report

import (
	"maps"
	"slices"

	"dispatcher/config"
	"dispatcher/ledger"
)

// modeWeighted is the mode that draws; the others go by the shared state and agree to no share.
const modeWeighted = "weighted"

// routeDay is what was agreed for one route on one day beside what came of it.
type routeDay struct {
	name     string
	route    *config.Route    // as it is now; nil when there is none of that name any more
	channels []string         // in the order of the newest version
	counts   map[string]int64 // first choices by channel
	total    int64            // of counts
	drawn    map[string]int64 // those of counts that a draw made
	draws    int64            // of drawn
	// agreed and expected are first choices by channel, if the shares of the document, or those that
	// the draws went by, had been exact. nil for a route that does not draw.
	agreed, expected map[string]float64
	tried            map[string][]*ledger.DailyRow // by channel, one for each currency
}

// newRouteDay collects what the figures say of one route.
func newRouteDay(f *Figures, name string) *routeDay {
	d := &routeDay{name: name, route: routeNamed(f.Current, name), counts: map[string]int64{}, drawn: map[string]int64{}, tried: map[string][]*ledger.DailyRow{}}
	for i := range f.Rows {
		if r := &f.Rows[i]; r.Route == name {
			d.tried[r.Channel] = append(d.tried[r.Channel], r)
			d.channels = append(d.channels, r.Channel)
		}
	}
	for _, c := range f.Choices {
		if c.Route == name {
			d.count(c, routeNamed(f.Versions[c.Version], name))
		}
	}
	if d.total == 0 {
		d.agreed, d.expected = agreedShares(d.route), effectiveShares(d.route)
	}
	var order []string
	if d.route != nil {
		order = d.route.Channels
		d.channels = append(d.channels, order...)
	}
	d.channels = inOrder(slices.AppendSeq(d.channels, maps.Keys(d.expected)), order)
	return d
}

// count adds the first choices that one channel got under one version of the route, and the part of
// them that each channel should have got.
func (d *routeDay) count(c ledger.ChoiceRow, route *config.Route) {
	d.counts[c.Channel] += c.FirstChoice
	d.total += c.FirstChoice
	d.channels = append(d.channels, c.Channel)
	if route != nil && route.Mode != modeWeighted {
		return
	}
	d.drawn[c.Channel] += c.FirstChoice
	d.draws += c.FirstChoice
	d.agreed = added(d.agreed, agreedShares(route), c.FirstChoice)
	d.expected = added(d.expected, effectiveShares(route), c.FirstChoice)
}

// added adds so many times the shares to a sum.
func added(sum, shares map[string]float64, times int64) map[string]float64 {
	if sum == nil {
		sum = make(map[string]float64, len(shares))
	}
	for channel, part := range shares {
		sum[channel] += part * float64(times)
	}
	return sum
}

// judge tests the draws of the route.
func (d *routeDay) judge() (p *float64, verdict string) {
	switch {
	case d.expected == nil && (d.total > 0 || d.route != nil):
		return nil, NoWeight
	case d.draws == 0:
		return nil, TooFew
	}
	counts, expected := make([]int64, len(d.channels)), make([]float64, len(d.channels))
	for i, c := range d.channels {
		counts[i], expected[i] = d.drawn[c], d.expected[c]
	}
	chance, verdict := Judge(counts, expected)
	if verdict != Kept && verdict != Deviates {
		return nil, verdict
	}
	return &chance, verdict
}

// rows makes one row per channel, and one more for each further currency.
func (d *routeDay) rows() []DailyRow {
	p, verdict := d.judge()
	var out []DailyRow
	for _, channel := range d.channels {
		at := len(out)
		out = append(out, d.row(channel))
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

// row is what was agreed for one channel, and its first choices.
func (d *routeDay) row(channel string) DailyRow {
	r := DailyRow{Route: d.name, Channel: channel, FirstChoice: d.counts[channel]}
	if d.total > 0 {
		r.FirstChoiceShare = float64(r.FirstChoice) / float64(d.total)
	}
	if d.expected == nil {
		return r
	}
	agreed, expected, deviation := d.agreed[channel], d.expected[channel], 0.0
	if d.draws > 0 {
		agreed, expected = agreed/float64(d.draws), expected/float64(d.draws)
		deviation = float64(d.drawn[channel])/float64(d.draws) - agreed
	}
	r.ConfiguredShare, r.EffectiveShare, r.Deviation = &agreed, &expected, &deviation
	return r
}

// fill copies what the attempts came to.
func (r *DailyRow) fill(from *ledger.DailyRow) {
	r.Fallback, r.Submitted, r.Accepted, r.Delivered = from.Fallback, from.Submitted, from.Accepted, from.Delivered
	r.Undelivered, r.NoReceipt = from.Undelivered, from.NoReceipt
	r.Failed, r.Unknown = from.Failed(), from.Unknown
	r.Segments, r.CostMicros, r.Currency = from.Segments, from.CostMicros, from.Currency
	r.UnknownSegments, r.UnknownMicros = from.UnknownSegments, from.UnknownMicros
}
