// Package report turns the ledger's raw figures into what finance and operators
// read: shares against the agreed proportions with a verdict, and the story of one message.
//
// It is pure; the commands fetch the figures and print the result.
package report

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Significance is the probability below which a deviation is no longer put down to
// chance. At one in a thousand a daily check raises a false alarm every three years.
const Significance = 0.001

// leastExpected is the expected count under which the chi-square approximation is not
// trusted (Cochran 1954).
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
// chi-square test with one degree of freedom less than cells. expected holds
// absolute numbers in the order of counts.
//
// Channels that expect fewer than leastExpected are tested together as one cell, so that
// a channel of a tenth of a percent does not leave the others untested. Entries that expect
// nothing are left out, unless they got something, which no chance explains. The probability is 1
// when nothing could be tested, which the verdict tells.
func Judge(counts []int64, expected []float64) (p float64, verdict string) {
	var cells []cell
	for i, want := range expected {
		switch {
		case want > 0:
			cells = append(cells, cell{float64(counts[i]), want})
		case counts[i] > 0:
			return 0, Deviates
		}
	}
	if len(cells) < 2 {
		return 1, OneWay
	}
	cells = pool(cells)
	if len(cells) < 2 {
		return 1, TooFew
	}
	x := 0.0
	for _, c := range cells {
		x += (c.got - c.want) * (c.got - c.want) / c.want
	}
	p = distuv.ChiSquared{K: float64(len(cells) - 1)}.Survival(x)
	if p < Significance {
		return p, Deviates
	}
	return p, Kept
}

// cell is one term of the sum.
type cell struct{ got, want float64 }

// pool adds up the cells that expect the least until each expects enough.
func pool(cells []cell) []cell {
	slices.SortFunc(cells, func(a, b cell) int { return cmp.Compare(a.want, b.want) })
	for len(cells) > 1 && cells[0].want < leastExpected {
		cells[1] = cell{cells[0].got + cells[1].got, cells[0].want + cells[1].want}
		cells = cells[1:]
		slices.SortFunc(cells, func(a, b cell) int { return cmp.Compare(a.want, b.want) })
	}
	return cells
}
