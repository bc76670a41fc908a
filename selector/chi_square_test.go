package selector_test

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"dispatcher/selector"
)

// chiSquare sums (observed-expected)^2/expected over the entries with an interval.
func chiSquare(table *selector.Table, counts []int, n int) float64 {
	expected := make([]float64, len(counts))
	for i := range expected {
		expected[i] = table.Share(i) * float64(n)
	}
	return chiSquareOf(counts, expected)
}

func chiSquareOf(counts []int, expected []float64) float64 {
	sum := 0.0
	for i, want := range expected {
		if want > 0 {
			sum += (float64(counts[i]) - want) * (float64(counts[i]) - want) / want
		}
	}
	return sum
}

// chiSquareP is the probability of a chi-square as large or larger when the expectation
// is right.
func chiSquareP(x float64, degrees int) float64 {
	return distuv.ChiSquared{K: float64(degrees)}.Survival(x)
}

// normalP is the probability that a standard normal lies at least as far from 0.
func normalP(z float64) float64 { return 2 * distuv.UnitNormal.Survival(math.Abs(z)) }

// binomialBound is how far a count of n draws of probability p may lie from n*p. A greater distance
// has a probability below 10^-12, so a test with fresh numbers fails only for a fault. By
// Bernstein's inequality, P(|X-np| >= t) is at most 2 exp(-t^2/2/(np(1-p)+t/3)).
func binomialBound(n int, p float64) float64 {
	l := math.Log(2e12)
	return l/3 + math.Sqrt(l*l/9+2*l*float64(n)*p*(1-p))
}

// runsP is the Wald-Wolfowitz test: the probability of at most or at least as many changes between
// true and false as in the series, if its elements are independent. Few changes mean long runs,
// many a regular alternation.
func runsP(series []bool) float64 {
	runs, yes := 1.0, 0.0
	for i, v := range series {
		if v {
			yes++
		}
		if i > 0 && v != series[i-1] {
			runs++
		}
	}
	n := float64(len(series))
	mean := 2*yes*(n-yes)/n + 1
	variance := (mean - 1) * (mean - 2) / (n - 1)
	return normalP((runs - mean) / math.Sqrt(variance))
}

// correlationP tests the correlation of a series with itself at a lag.
func correlationP(series []float64, lag int) float64 {
	mean := 0.0
	for _, v := range series {
		mean += v / float64(len(series))
	}
	var along, total float64
	for i, v := range series {
		total += (v - mean) * (v - mean)
		if i >= lag {
			along += (v - mean) * (series[i-lag] - mean)
		}
	}
	return normalP(along / total * math.Sqrt(float64(len(series))))
}

// geometricP tests the lengths of the runs on a channel of share p: independent draws give length k
// with probability p^(k-1)(1-p). Lengths expected fewer than five times are tested together.
func geometricP(lengths []int, p float64) float64 {
	n := float64(len(lengths))
	var expected []float64
	rest := n
	for k := 1; rest*p >= 5 && rest*(1-p) >= 5; k++ {
		expected = append(expected, rest*(1-p))
		rest *= p
	}
	expected = append(expected, rest)
	counts := make([]int, len(expected))
	for _, length := range lengths {
		counts[min(length, len(counts))-1]++
	}
	return chiSquareP(chiSquareOf(counts, expected), len(counts)-1)
}

// runLengths splits a series of choices into runs and lists their lengths by channel.
func runLengths(choices []int, channels int) [][]int {
	out, length := make([][]int, channels), 0
	for i, c := range choices {
		length++
		if i == len(choices)-1 || choices[i+1] != c {
			out[c] = append(out[c], length)
			length = 0
		}
	}
	return out
}
