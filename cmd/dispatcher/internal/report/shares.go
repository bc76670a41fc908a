// Package report turns the ledger's raw figures into what finance and operators
// read: shares against the agreed proportions with a verdict, and the story of one message.
//
// It is pure; the commands fetch the figures and print the result.
package report

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Significance is the probability below which a deviation is no longer put down to
// chance. At one in a thousand a daily check raises a false alarm every three years.
const Significance = 0.001

// leastExpected is the expected count per channel under which the chi-square
// approximation is not trusted (Cochran 1954).
const leastExpected = 5

// Verdicts on the shares of a route.
const (
	Kept     = "kept"      // the deviation is what chance explains
	Deviates = "deviates"  // it is not
	TooFew   = "too_few"   // not enough messages to say
	OneWay   = "one_way"   // only one channel has a weight: nothing to test
	NoWeight = "no_weight" // the route does not choose by weight
)

// Judge compares counts with what the agreed shares let expect, by Pearson's
// chi-square test with one degree of freedom less than channels. expected holds
// absolute numbers in the order of counts; entries that expect nothing are left out,
// unless they got something, which no chance explains.
func Judge(counts []int64, expected []float64) (p float64, verdict string) {
	x, channels, smallest := 0.0, 0, math.Inf(1)
	for i, want := range expected {
		got := float64(counts[i])
		if want == 0 {
			if got > 0 {
				return 0, Deviates
			}
			continue
		}
		x += (got - want) * (got - want) / want
		channels++
		smallest = min(smallest, want)
	}
	switch {
	case channels < 2:
		return 1, OneWay
	case smallest < leastExpected:
		return 1, TooFew
	}
	p = distuv.ChiSquared{K: float64(channels - 1)}.Survival(x)
	if p < Significance {
		return p, Deviates
	}
	return p, Kept
}
