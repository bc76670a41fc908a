package selector

import "math"

// grid makes each term of Match a multiple of 2^-46: adding grid to a number in [0,1] drops its
// further bits, because float64 values near 64 are 2^-46 apart. Sums of up to 128 such terms are
// exact, so they do not depend on the order of the selectors. Equally good channels tie, and the
// tie is broken by the longer wait and not by a rounding error.
const grid = 64

// Match is the default score of best_worker, in [0,1]: how well a channel's labels fit what a
// message is labelled with and asks for. Each label and each selector of the message is one term;
// the score is the sum of the terms divided by their number.
//
//   - A label of the message counts 1 when the channel has the same label with the same
//     value, else 0. The text "5" is not the number 5.
//   - A selector with equal or notEqual counts 1 when it is satisfied, else 0. A missing
//     label satisfies notEqual.
//   - A selector that compares magnitudes counts 1/(1+e^-x), where x is
//     (label - selector)/|selector| for greaterThan and greaterThanEqual and
//     (selector - label)/|selector| for lessThan and lessThanEqual. With selector 0, x is
//     6, 0 or -6, by the sign of the difference. A label that is missing or no number
//     counts 0, as does a selector whose value is a text.
//   - Selectors with the same key are separate terms.
//   - A message without labels and selectors scores every channel 1.
//
// The first three rules are the default label and selector matching of the distribution modes that
// the design follows, which leave the rest open. Matcher gives the same scores for many channels in
// a third of the time.
func Match(labels map[string]Value, selectors []Selector, channel map[string]Value) float64 {
	terms := len(labels) + len(selectors)
	if terms == 0 {
		return 1
	}
	sum := 0.0
	for key, want := range labels {
		if have, found := channel[key]; found && have == want {
			sum++
		}
	}
	for i := range selectors {
		label, found := channel[selectors[i].Key]
		sum += selectors[i].term(label, found)
	}
	return sum / float64(terms)
}

// term is what the selector adds to the sum of a channel with that label.
func (s *Selector) term(label Value, found bool) float64 {
	switch s.Operator {
	case Equal:
		if found && label == s.Value {
			return 1
		}
	case NotEqual:
		if !found || label != s.Value {
			return 1
		}
	case GreaterThan, GreaterThanEqual, LessThan, LessThanEqual:
		if found && label.IsNumber && s.Value.IsNumber {
			return logistic(s.excess(label.Number))
		}
	}
	return 0
}

// zeroExcess replaces the relative distance from a selector of value 0, which does not exist:
// 1/(1+e^-6) is 0.9975.
const zeroExcess = 6

// excess is how far a label lies on the required side of the selector's value, as a
// multiple of that value; negative on the other side.
func (s *Selector) excess(label float64) float64 {
	over, base := label-s.Value.Number, math.Abs(s.Value.Number)
	if s.Operator == LessThan || s.Operator == LessThanEqual {
		over = -over
	}
	switch {
	case over == 0:
		return 0
	case base == 0:
		return math.Copysign(zeroExcess, over)
	}
	return over / base
}

// logistic is 1/(1+e^-x), rounded to the grid. NaN, which only infinite or NaN labels cause, counts
// 0.
func logistic(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return 1/(1+math.Exp(-x)) + grid - grid
}
