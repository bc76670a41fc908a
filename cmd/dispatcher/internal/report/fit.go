package report

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// Significance is the probability below which a deviation is no longer put down to
// chance. At one in a thousand a daily check raises a false alarm every three years.
const Significance = 0.001

// leastExpected is the expected count under which the chi-square approximation is not
// trusted (Cochran 1954).
const leastExpected = 5

// Verdicts on the draws of a route, and on its traffic. TooFew and NoWeight are of both.
const (
	Fair   = "fair"    // chance explains how the draws spread over the channels
	Unfair = "unfair"  // it does not
	OneWay = "one_way" // only one channel has a weight: there is nothing to test
	// Sticky: the route draws by recipient. Messages of one recipient are no independent draws, so
	// they are not tested.
	Sticky = "sticky"

	Kept = "kept" // the channels carried what was agreed
	// Moved: a channel carried more or less than was agreed, or hardly anything was carried.
	Moved = "moved"

	TooFew   = "too_few"   // not enough messages to say
	NoWeight = "no_weight" // the route does not choose by weight, so no share is agreed
)

// Sample is what was counted under one routing version, and what was expected. Both lists are in
// the same order of channels.
type Sample struct {
	Counts   []int64
	Expected []float64 // absolute numbers
}

// Fit is the result of a chi-square test.
type Fit struct {
	// P is the probability of deviations as large as these or larger, by chance. It is 1 when
	// Verdict is OneWay or TooFew: then nothing was tested.
	P float64
	// Freedom is the number of degrees of freedom of the sum, 0 of an exact test.
	Freedom int
	Verdict string // Fair, Unfair, OneWay or TooFew
}

// Tested reports whether P says anything.
func (f Fit) Tested() bool { return f.Verdict == Fair || f.Verdict == Unfair }

// FitOf tests samples against what was expected of each: Pearson's chi-square, summed over the
// samples, with the sum of their degrees of freedom. Faults that cancel in the totals stay visible
// that way. All samples list the same channels.
//
// Channels of a sample that expect fewer than leastExpected are tested together as one cell.
// Samples that are too small even so are added up and tested as one: many short versions must not
// hide the draws of a day. Where all of them together are too small for chi-square, the exact test
// decides whether chance can explain them; that it can says nothing, hence TooFew. A channel that
// expects nothing and got something is no chance at all.
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

// cells are the channels that expect anything; false when another one got something.
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

// pool adds up the cells that expect the least until each expects enough.
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

// exact is the exact multinomial test: the probability of all outcomes that are as unlikely as what
// was counted, or more. It is false where there are too many outcomes.
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
