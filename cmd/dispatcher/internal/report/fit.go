package report

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// Significance is the p-value below which a deviation no longer counts as chance. At one in a
// thousand, a daily check raises a false alarm about every three years.
const Significance = 0.001

// leastExpected is the expected count below which the chi-square approximation is not reliable
// (Cochran 1954).
const leastExpected = 5

// Verdicts on the draws of a route, and on its traffic. Both have TooFew and NoWeight.
const (
	Fair   = "fair"    // chance explains how the draws spread over the channels
	Unfair = "unfair"  // chance does not explain it
	OneWay = "one_way" // only one channel has a weight: there is nothing to test
	// Sticky means that the route draws by recipient. Messages to one recipient are not independent
	// draws, so nothing is tested.
	Sticky = "sticky"

	Kept = "kept" // the channels carried what was agreed
	// Moved means that a channel carried more or less than was agreed, or that most messages were
	// not carried.
	Moved = "moved"

	TooFew   = "too_few"   // not enough messages for a verdict
	NoWeight = "no_weight" // the route does not choose by weight, so no share is agreed
)

// Sample has the counts under one routing version and the expected counts, in the same order of
// channels.
type Sample struct {
	Counts   []int64
	Expected []float64 // counts, not shares
}

// Fit is the result of a chi-square test.
type Fit struct {
	// P is the probability that chance causes deviations at least as large as these. It is 1 when
	// Verdict is OneWay or TooFew: then nothing was tested.
	P float64
	// Freedom is the number of degrees of freedom of the sum; 0 for an exact test.
	Freedom int
	Verdict string // Fair, Unfair, OneWay or TooFew
}

// Tested reports whether something was tested, so that P has a meaning.
func (f Fit) Tested() bool { return f.Verdict == Fair || f.Verdict == Unfair }

// FitOf tests samples against their expected counts: by Pearson's chi-square, summed over the
// samples, with the sum of their degrees of freedom. So faults that cancel in the totals stay
// visible. All samples list the same channels.
//
// Channels of a sample that expect fewer than leastExpected are tested as one cell. Samples that
// are still too small are added up and tested as one, so that many short versions do not hide the
// draws of a day. If all samples together are too small for chi-square, an exact test is made. It
// can only show that the draws were Unfair; otherwise the verdict is TooFew. A channel that expects
// nothing and got something makes the verdict Unfair.
func FitOf(samples ...Sample) Fit {
	var x float64
	var freedom int
	var small Sample
	oneWay := true
	for i := range samples {
		cells, possible := samples[i].cells()
		switch {
		case !possible:
			return Fit{Verdict: Unfair}
		case len(cells) < 2:
			continue
		}
		oneWay = false
		if cells = pool(cells); len(cells) < 2 {
			small.add(&samples[i])
			continue
		}
		x, freedom = x+chiSquare(cells), freedom+len(cells)-1
	}
	few, _ := small.cells()
	cells := pool(slices.Clone(few))
	if len(cells) > 1 {
		x, freedom = x+chiSquare(cells), freedom+len(cells)-1
	}
	switch {
	case oneWay:
		return Fit{P: 1, Verdict: OneWay}
	case freedom == 0:
		if p, ok := exact(few); ok && p < Significance {
			return Fit{P: p, Verdict: Unfair}
		}
		return Fit{P: 1, Verdict: TooFew}
	}
	f := Fit{P: distuv.ChiSquared{K: float64(freedom)}.Survival(x), Freedom: freedom, Verdict: Fair}
	if f.P < Significance {
		f.Verdict = Unfair
	}
	return f
}

// cell is one term of the sum.
type cell struct{ got, want float64 }

// cells are the channels that expect anything; possible is false when another channel got
// something.
func (s *Sample) cells() (cells []cell, possible bool) {
	for i, want := range s.Expected {
		switch {
		case want > 0:
			cells = append(cells, cell{float64(s.Counts[i]), want})
		case s.Counts[i] > 0:
			return nil, false
		}
	}
	return cells, true
}

// add adds another sample over the same channels.
func (s *Sample) add(other *Sample) {
	if s.Counts == nil {
		s.Counts, s.Expected = make([]int64, len(other.Counts)), make([]float64, len(other.Counts))
	}
	for i := range other.Counts {
		s.Counts[i] += other.Counts[i]
		s.Expected[i] += other.Expected[i]
	}
}

// pool merges the cells with the lowest expected counts until each expects at least leastExpected.
func pool(cells []cell) []cell {
	byWant := func(a, b cell) int { return cmp.Compare(a.want, b.want) }
	slices.SortFunc(cells, byWant)
	for len(cells) > 1 && cells[0].want < leastExpected {
		cells[1] = cell{cells[0].got + cells[1].got, cells[0].want + cells[1].want}
		cells = cells[1:]
		slices.SortFunc(cells, byWant)
	}
	return cells
}

// mostOutcomes bounds the work of an exact test.
const mostOutcomes = 1e6

// exact is the exact multinomial test: the probability of all outcomes that are at most as likely
// as the counted one. It returns false when there are too many outcomes to sum.
func exact(cells []cell) (p float64, ok bool) {
	var n, total float64
	for _, c := range cells {
		n, total = n+c.got, total+c.want
	}
	if len(cells) < 2 || combin.LogGeneralizedBinomial(n+float64(len(cells)-1),
		float64(len(cells)-1)) > math.Log(mostOutcomes) {
		return 1, false
	}
	// term is the part of one cell in the logarithm of an outcome's probability.
	term := func(c cell, got float64) float64 {
		factorial, _ := math.Lgamma(got + 1)
		return got*math.Log(c.want/total) - factorial
	}
	all, _ := math.Lgamma(n + 1)
	counted := all
	for _, c := range cells {
		counted += term(c, c.got)
	}
	var each func(rest []cell, left, log float64)
	each = func(rest []cell, left, log float64) {
		if len(rest) == 1 {
			if log += term(rest[0], left); log <= counted+roundingError {
				p += math.Exp(log)
			}
			return
		}
		for got := 0.0; got <= left; got++ {
			each(rest[1:], left-got, log+term(rest[0], got))
		}
	}
	each(cells, n, all)
	return p, true
}

func chiSquare(cells []cell) (x float64) {
	for _, c := range cells {
		x += (c.got - c.want) * (c.got - c.want) / c.want
	}
	return x
}
