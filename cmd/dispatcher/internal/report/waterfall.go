package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// VersionShare counts the messages under one version's agreed shares.
type VersionShare struct {
	Version int64 `json:"version"`
	Drawn   int64 `json:"drawn"`
	Carried int64 `json:"carried"`
	// InForceSeconds is how long it was in force in the period.
	InForceSeconds int64 `json:"in_force_seconds"`
}

// Waterfall leads from what a channel should carry to what it carried, in messages, segments and
// each currency. In each of these, agreed plus steps equals carried, and agreed plus the steps of
// health weighting, draws and prices equals drawn. Over all channels, the steps of moved messages
// sum to zero.
type Waterfall struct {
	Channel string `json:"channel"`
	// Agreed is the channel's agreed share of the drawn messages, AgreedSegments that of their
	// segments. AgreedCosts are its share of what was billed, because a message that no channel
	// carried has no price.
	Agreed  int64           `json:"agreed"`
	Steps   []WaterfallStep `json:"steps"`
	Carried int64           `json:"carried"`

	AgreedSegments int64      `json:"agreed_segments"`
	AgreedCosts    []MoveCost `json:"agreed_costs"`
	// Drawn are the messages that the draws gave to the channel, DrawnSegments their segments.
	// DrawnCosts are what the channels that carried them billed for them.
	Drawn         int64      `json:"drawn"`
	DrawnSegments int64      `json:"drawn_segments"`
	DrawnCosts    []MoveCost `json:"drawn_costs"`
	// CarriedSegments and CarriedCosts are Segments and CostMicros of the channel's rows.
	CarriedSegments int64      `json:"carried_segments"`
	CarriedCosts    []MoveCost `json:"carried_costs"`
}

// WaterfallStep is one cause of a difference. A loss of the channel is negative.
type WaterfallStep struct {
	// Cause is the cause of a Move, or one of the steps below.
	Cause string `json:"cause"`
	// Limit is the limit of the Move.
	Limit string `json:"limit,omitempty"`
	// Channel is the channel that the messages went to or came from; empty for neither.
	Channel  string     `json:"channel"`
	In       bool       `json:"in"` // whether they came from Channel
	Messages int64      `json:"messages"`
	Segments int64      `json:"segments"`
	Costs    []MoveCost `json:"costs"`
}

// Causes of steps that are not causes of a Move.
const (
	// stepDraws is chance: drawn messages minus those expected by the effective shares.
	stepDraws = "draws"
	// stepPrices is the cost of the messages drawn for the channel minus their cost at the mean of
	// the route.
	stepPrices = "prices"
	// stepNotDrawn are first choices of a mode without draws, on a day with both kinds of modes.
	stepNotDrawn = "not_drawn"
	// stepOtherDay are messages that were received on another day than carried, and resent messages
	// that two channels carried.
	stepOtherDay = "other_day"
	// stepCounted are billed segments minus the segments of the texts. They differ if a channel
	// counts segments in its own way or took only parts of a message.
	stepCounted = "counted_otherwise"
	// stepInPart was billed for attempts that the channel did not accept whole.
	stepInPart = "in_part"
)

// waterfallOf finds the waterfall of a channel; nil when it has none.
func waterfallOf(all []Waterfall, channel string) *Waterfall {
	if at := slices.IndexFunc(all, func(w Waterfall) bool { return w.Channel == channel }); at >= 0 {
		return &all[at]
	}
	return nil
}

// versionShares lists the versions under which messages were drawn, or drawn messages carried.
func (d *routeDay) versionShares() []VersionShare {
	out := []VersionShare{}
	all := slices.Collect(maps.Keys(d.drawn.versions))
	all = slices.AppendSeq(all, maps.Keys(d.traffic.versions))
	slices.Sort(all)
	for _, version := range slices.Compact(all) {
		one := VersionShare{Version: version}
		for _, v := range d.inForce {
			if v.Version == version {
				one.InForceSeconds = int64(v.To.Sub(v.From) / time.Second)
			}
		}
		if v := d.drawn.versions[version]; v != nil {
			one.Drawn = v.total
		}
		if v := d.traffic.versions[version]; v != nil {
			one.Carried = v.total
		}
		out = append(out, one)
	}
	return out
}

// waterfall makes the waterfall of each channel.
func (d *routeDay) waterfall() []Waterfall {
	out := []Waterfall{}
	if d.drawn.total == 0 {
		return out
	}
	agreed, effective, even := d.expected(agreedOf), d.expected(effectiveOf), d.even()
	for i, channel := range d.channels {
		drawn, chosen := d.drawnFor(channel), d.chosenFor(channel)
		s := waterfallSum{channel: channel, agreed: agreed[i], drawn: drawn}
		s.step(causeHealth, effective[i].less(&agreed[i]))
		s.step(stepDraws, even[i].less(&effective[i]))
		s.step(stepPrices, drawn.less(&even[i]))
		s.step(stepNotDrawn, chosen.less(&drawn))
		d.carryOn(&s, d.end(&s, chosen))
		out = append(out, s.waterfall())
	}
	return out
}

// drawnFor is what was drawn for a channel, and what any channel billed for it.
func (d *routeDay) drawnFor(channel string) quantity {
	q := quantity{
		d.drawn.counts[channel], d.drawnSegments.counts[channel], map[string]int64{},
	}
	for currency, paid := range d.paid {
		q.costs[currency] = paid.counts[channel]
	}
	return q
}

// chosenFor is the same for the first choices of all modes.
func (d *routeDay) chosenFor(channel string) quantity {
	return quantity{d.counts[channel], d.segments[channel], d.billed[channel]}
}

// expected is what each channel is expected to have by its shares: of the drawn messages, of their
// segments, and of what was billed for the carried ones.
func (d *routeDay) expected(shares func(*versionSum) map[string]float64) []quantity {
	out := make([]quantity, len(d.channels))
	for i, n := range apportion(d.drawn.expected(shares), d.channels, d.drawn.total) {
		out[i] = quantity{messages: n, costs: map[string]int64{}}
	}
	segments := d.drawnSegments.expected(shares)
	for i, n := range apportion(segments, d.channels, d.drawnSegments.total) {
		out[i].segments = n
	}
	for currency, paid := range d.paid {
		for i, n := range apportion(paid.expected(shares), d.channels, paid.total) {
			out[i].costs[currency] = n
		}
	}
	return out
}

// even is what was drawn for each channel, with costs as if each message of a version had cost the
// same.
func (d *routeDay) even() []quantity {
	out := make([]quantity, len(d.channels))
	for i, channel := range d.channels {
		out[i] = d.drawnFor(channel)
	}
	for currency, paid := range d.paid {
		costs := map[string]float64{}
		for version, v := range paid.versions {
			shares := v.effective
			if firsts := d.firsts.versions[version]; firsts.total > 0 {
				shares = map[string]float64{}
				for channel, messages := range firsts.counts {
					shares[channel] = float64(messages) / float64(firsts.total)
				}
			}
			for channel, share := range shares {
				costs[channel] += share * float64(v.total)
			}
		}
		for i, n := range apportion(costs, d.channels, paid.total) {
			out[i].costs[currency] = n
		}
	}
	return out
}

// end adds a step for each cause of messages that ended without a channel, the most messages first.
// It returns rest without them.
func (d *routeDay) end(s *waterfallSum, rest quantity) quantity {
	ends := d.ends[s.channel]
	for _, cause := range slices.SortedFunc(maps.Keys(ends), func(a, b string) int {
		return cmp.Or(cmp.Compare(ends[b].messages, ends[a].messages), cmp.Compare(a, b))
	}) {
		s.step(cause, (&quantity{}).less(ends[cause]))
		rest = rest.less(ends[cause])
	}
	return rest
}

// carryOn adds the steps from rest, the channel's first choices that did not end without a channel,
// to what it carried and billed.
func (d *routeDay) carryOn(s *waterfallSum, rest quantity) {
	var firsts, carried quantity
	var out, in []summedStep
	for _, f := range d.flowsInOrder() {
		q := d.flows[f]
		if f.channel == s.channel {
			firsts = firsts.plus(q)
		}
		if f.to == s.channel {
			carried = carried.plus(q)
		}
		switch {
		case f.channel == f.to:
		case f.channel == s.channel:
			out = append(out, summedStep{f.word, f.limit, f.to, false, (&quantity{}).less(q)})
		case f.to == s.channel:
			in = append(in, summedStep{f.word, f.limit, f.channel, true, *q})
		}
	}
	texts := firsts
	texts.segments = d.texts[s.channel]
	s.step(stepOtherDay, texts.less(&rest))
	s.step(stepCounted, firsts.less(&texts))
	s.carried = quantity{messages: d.carried[s.channel]}
	for _, tried := range d.tried[s.channel] {
		s.carried = s.carried.plus(&quantity{
			segments: tried.Segments, costs: map[string]int64{tried.Currency: tried.CostMicros},
		})
	}
	s.step(stepInPart, s.carried.less(&carried))
	s.steps = slices.Concat(s.steps, out, in)
}

// flowsInOrder returns the flows, the most messages first.
func (d *routeDay) flowsInOrder() []flow {
	return slices.SortedFunc(maps.Keys(d.flows), func(a, b flow) int {
		return cmp.Or(cmp.Compare(d.flows[b].messages, d.flows[a].messages),
			cmp.Compare(a.word, b.word), cmp.Compare(a.limit, b.limit),
			cmp.Compare(a.channel, b.channel), cmp.Compare(a.to, b.to))
	})
}

// apportion rounds expected numbers to integers with the sum total, by the method of largest
// remainders: those with the largest fractions are rounded up.
func apportion(expected map[string]float64, channels []string, total int64) []int64 {
	out := make([]int64, len(channels))
	order, remainders := make([]int, len(channels)), make([]float64, len(channels))
	for i, channel := range channels {
		whole, remainder := math.Modf(expected[channel] + roundingError)
		out[i], remainders[i], order[i] = int64(whole), remainder, i
		total -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(remainders[b], remainders[a])
	})
	for _, i := range order {
		if total <= 0 {
			break
		}
		out[i]++
		total--
	}
	return out
}
