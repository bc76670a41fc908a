package report

import (
	"cmp"
	"maps"
	"slices"
)

// quantity is a number of messages, their segments, and their cost in micros of each currency.
type quantity struct {
	messages, segments int64
	costs              map[string]int64
}

// plus is the sum. It changes neither operand.
func (q *quantity) plus(o *quantity) quantity { return q.combine(o, 1) }

// less is the difference.
func (q *quantity) less(o *quantity) quantity { return q.combine(o, -1) }

func (q *quantity) combine(o *quantity, sign int64) quantity {
	sum := quantity{
		q.messages + sign*o.messages, q.segments + sign*o.segments, maps.Clone(q.costs),
	}
	for currency, micros := range o.costs {
		if sum.costs == nil {
			sum.costs = map[string]int64{}
		}
		sum.costs[currency] += sign * micros
	}
	return sum
}

// listed returns the amounts that are not zero, sorted by currency.
func (q *quantity) listed() []MoveCost {
	out := []MoveCost{}
	for _, currency := range slices.Sorted(maps.Keys(q.costs)) {
		if micros := q.costs[currency]; micros != 0 {
			out = append(out, MoveCost{currency, micros})
		}
	}
	return out
}

// waterfallSum is a waterfall that is being summed.
type waterfallSum struct {
	channel                string
	agreed, drawn, carried quantity
	steps                  []summedStep
}

// summedStep is a step in all units. in says that it came from channel.
type summedStep struct {
	cause, limit, channel string
	in                    bool
	quantity
}

// step adds a step without a channel.
func (s *waterfallSum) step(cause string, q quantity) {
	s.steps = append(s.steps, summedStep{cause: cause, quantity: q})
}

// waterfall converts the sum. It leaves out steps of zero.
func (s *waterfallSum) waterfall() Waterfall {
	w := Waterfall{
		Channel: s.channel,
		Agreed:  s.agreed.messages, AgreedSegments: s.agreed.segments, AgreedCosts: s.agreed.listed(),
		Drawn: s.drawn.messages, DrawnSegments: s.drawn.segments, DrawnCosts: s.drawn.listed(),
		Carried: s.carried.messages, CarriedSegments: s.carried.segments,
		CarriedCosts: s.carried.listed(),
	}
	for i := range s.steps {
		step := &s.steps[i]
		one := WaterfallStep{
			Cause: step.cause, Limit: step.limit, Channel: step.channel, In: step.in,
			Messages: step.messages, Segments: step.segments, Costs: step.listed(),
		}
		if one.Messages != 0 || one.Segments != 0 || len(one.Costs) > 0 {
			w.Steps = append(w.Steps, one)
		}
	}
	return w
}

// SumWaterfalls sums waterfalls of several periods by channel, with channels in the order of all.
// The steps keep their order: chance and ended messages, then messages to other channels, then
// those from other channels.
func SumWaterfalls(all []Waterfall) (out []Waterfall) {
	var sums []*waterfallSum
	for i := range all {
		w := &all[i]
		at := slices.IndexFunc(sums, func(s *waterfallSum) bool { return s.channel == w.Channel })
		if at < 0 {
			at = len(sums)
			sums = append(sums, &waterfallSum{channel: w.Channel})
		}
		sums[at].add(w)
	}
	for _, s := range sums {
		w := s.waterfall()
		slices.SortStableFunc(w.Steps, func(a, b WaterfallStep) int {
			return cmp.Compare(a.kind(), b.kind())
		})
		out = append(out, w)
	}
	return out
}

// kind is the place of a step in the order in which waterfall makes them.
func (s *WaterfallStep) kind() int {
	first := []string{causeHealth, stepDraws, stepPrices, stepNotDrawn}
	last := []string{stepOtherDay, stepCounted, stepInPart}
	switch {
	case s.Channel == "" && slices.Contains(first, s.Cause):
		return slices.Index(first, s.Cause)
	case s.Channel == "" && slices.Contains(last, s.Cause):
		return len(first) + 1 + slices.Index(last, s.Cause)
	case s.Channel == "":
		return len(first)
	case !s.In:
		return len(first) + len(last) + 1
	}
	return len(first) + len(last) + 2
}

// add adds a waterfall of the same channel.
func (s *waterfallSum) add(w *Waterfall) {
	agreed := quantityOf(w.Agreed, w.AgreedSegments, w.AgreedCosts)
	drawn := quantityOf(w.Drawn, w.DrawnSegments, w.DrawnCosts)
	carried := quantityOf(w.Carried, w.CarriedSegments, w.CarriedCosts)
	s.agreed, s.drawn = s.agreed.plus(&agreed), s.drawn.plus(&drawn)
	s.carried = s.carried.plus(&carried)
	for i := range w.Steps {
		step := &w.Steps[i]
		q := quantityOf(step.Messages, step.Segments, step.Costs)
		same := slices.IndexFunc(s.steps, func(o summedStep) bool {
			return o.cause == step.Cause && o.limit == step.Limit && o.channel == step.Channel &&
				o.in == step.In
		})
		if same < 0 {
			s.steps = append(s.steps, summedStep{
				step.Cause, step.Limit, step.Channel, step.In, q,
			})
		} else {
			s.steps[same].quantity = s.steps[same].plus(&q)
		}
	}
}

func quantityOf(messages, segments int64, costs []MoveCost) quantity {
	q := quantity{messages: messages, segments: segments, costs: map[string]int64{}}
	for _, c := range costs {
		q.costs[c.Currency] += c.CostMicros
	}
	return q
}
