package selector

import (
	"math"
	"time"
)

// matchUnit is the full score of one term of Match. Terms are whole numbers of
// 1/matchUnit, so their sum is exact and does not depend on the order in which the
// selectors stand: channels that are equally good tie, and the tie is broken by who has
// waited longer, not by a rounding error.
const matchUnit = 1 << 50

// Match is the default score of best_worker, in [0,1]: how well a channel's labels fit
// what a message is labelled with and wishes. Each label and each selector of the message
// is one term; the score is the sum of the terms divided by their number.
//
//   - A label of the message counts 1 when the channel has the same label with the same
//     value, else 0. The text "5" is not the number 5.
//   - A selector with equal or notEqual counts 1 when it is satisfied, else 0. A missing
//     label satisfies notEqual.
//   - A selector that compares magnitudes counts 1/(1+e^-x), where x is
//     (label - selector)/|selector| for greaterThan and greaterThanEqual and
//     (selector - label)/|selector| for lessThan and lessThanEqual. With selector 0, x is
//     6, 0 or -6 after the sign of the difference. A label that is missing or no number
//     counts 0, as does a selector whose value is a text.
//   - Selectors that share a key are terms of their own.
//   - A message without labels and selectors scores every channel 1.
//
// The first three are the default label and selector matching of the distribution modes
// that the design is built on; the rest it leaves open.
func Match(labels map[string]Value, selectors []Selector, channel map[string]Value) float64 {
	terms := len(labels) + len(selectors)
	if terms == 0 {
		return 1
	}
	sum := uint64(0)
	for key, want := range labels {
		if have, found := channel[key]; found && have == want {
			sum += matchUnit
		}
	}
	for i := range selectors {
		sum += selectors[i].term(channel)
	}
	return float64(sum) / (float64(terms) * matchUnit)
}

// term is what the selector adds to a score, in units of 1/matchUnit.
func (s *Selector) term(channel map[string]Value) uint64 {
	label, found := channel[s.Key]
	switch s.Operator {
	case Equal:
		if found && label == s.Value {
			return matchUnit
		}
	case NotEqual:
		if !found || label != s.Value {
			return matchUnit
		}
	case GreaterThan, GreaterThanEqual, LessThan, LessThanEqual:
		if found && label.IsNumber && s.Value.IsNumber {
			return logistic(s.excess(label.Number))
		}
	}
	return 0
}

// zeroExcess is how far a label counts as above or below a selector of value 0, where a
// relative distance does not exist: 1/(1+e^-6) is 0.9975.
const zeroExcess = 6

// excess is how far a label lies on the wished side of the selector's value, as a
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

// logistic is 1/(1+e^-x) in units of 1/matchUnit, rounded. What is no number, which
// only labels that are not finite lead to, counts 0.
func logistic(x float64) uint64 {
	if math.IsNaN(x) {
		return 0
	}
	return uint64(matchUnit/(1+math.Exp(-x)) + 0.5)
}

// Unexpired returns the selectors that still count for a message received age ago: those
// without ExpiresAfter and those whose ExpiresAfter is above age. When all do, it returns
// the slice it was given and allocates nothing; it never changes that slice.
func Unexpired(selectors []Selector, age time.Duration) []Selector {
	for i := range selectors {
		if selectors[i].expired(age) {
			return unexpired(selectors, i, age)
		}
	}
	return selectors
}

// unexpired copies the selectors that count; first is the first that does not.
func unexpired(selectors []Selector, first int, age time.Duration) []Selector {
	out := make([]Selector, first, len(selectors)-1)
	copy(out, selectors)
	for _, s := range selectors[first+1:] {
		if !s.expired(age) {
			out = append(out, s)
		}
	}
	return out
}

func (s *Selector) expired(age time.Duration) bool {
	return s.ExpiresAfter != 0 && age >= s.ExpiresAfter
}
