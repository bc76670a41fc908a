package report

import (
	"math"
	"testing"
)

func TestFitFollowsTheChiSquareTable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		samples []Sample
		p       float64
		freedom int
		verdict string
	}{
		"exact": {
			[]Sample{{[]int64{25, 15, 60}, []float64{25, 15, 60}}},
			1, 2,
			Fair,
		},
		"critical value of 5 %": {[]Sample{{
			[]int64{1000 + 44, 1000 - 44},
			[]float64{1000, 1000},
		}}, 0.0491, 1, Fair},
		"far off": {
			[]Sample{{[]int64{400, 150, 450}, []float64{250, 150, 600}}},
			0,
			2, Unfair,
		},
		"a channel of weight 0": {[]Sample{{[]int64{100, 0}, []float64{100, 0}}}, 1, 0, OneWay},
		"weight 0 that got some": {
			[]Sample{{[]int64{99, 100, 1}, []float64{100, 100, 0}}},
			0, 0,
			Unfair,
		},
		"too few for a statement": {
			[]Sample{{[]int64{3, 0, 1}, []float64{1, 0.6, 2.4}}},
			1, 0,
			TooFew,
		},
		// Six of six on a channel of 20 %: 0.2^6.
		"too few for chi-square, and no chance": {
			[]Sample{{[]int64{0, 6}, []float64{4.8, 1.2}}},
			0.000064, 0,
			Unfair,
		},
		"over several versions": {
			[]Sample{
				{[]int64{0, 3}, []float64{2.4, 0.6}}, {[]int64{0, 3}, []float64{2.4, 0.6}},
			},
			0.000064, 0,
			Unfair,
		},
		"only one cell is left": {[]Sample{{[]int64{1, 9}, []float64{2, 8}}}, 1, 0, TooFew},
		"nothing happened":      {[]Sample{{[]int64{0, 0}, []float64{0, 0}}}, 1, 0, OneWay},
		"no sample at all":      {nil, 1, 0, OneWay},
		// 1.3 and 3.7 add up to an expectation of 5: x = (10-5)^2/5 + (90-95)^2/95.
		"small ones are pooled": {
			[]Sample{{[]int64{9, 1, 90}, []float64{1.3, 3.7, 95}}},
			0.0218, 1,
			Fair,
		},
		// x = 4 * 100²/500 = 80 with two degrees of freedom; in the totals x is 0.
		"faults that cancel": {[]Sample{
			{[]int64{600, 400}, []float64{500, 500}}, {[]int64{400, 600}, []float64{500, 500}},
		}, 0, 2, Unfair},
		// Of each version 2 of 4 are expected on a; of four together 8 of 16. x = 2 * 4²/8 = 4.
		"small versions are added up": {[]Sample{
			{[]int64{3, 1}, []float64{2, 2}},
			{[]int64{3, 1}, []float64{2, 2}},
			{[]int64{3, 1}, []float64{2, 2}},
			{[]int64{3, 1}, []float64{2, 2}},
		}, 0.0455, 1, Fair},
		// x = 0 of the first version and 4 of the others, with one degree of freedom each.
		"beside a large one": {[]Sample{
			{[]int64{50, 50}, []float64{50, 50}},
			{[]int64{6, 2}, []float64{4, 4}},
			{[]int64{6, 2}, []float64{4, 4}},
		}, 0.1353, 2, Fair},
	} {
		f := FitOf(tc.samples...)
		if math.Abs(f.P-tc.p) > 0.0005 || f.Verdict != tc.verdict || f.Freedom != tc.freedom {
			t.Errorf("%s: %+v, want p %.4f, %d degrees of freedom, %s", name, f, tc.p, tc.freedom,
				tc.verdict)
		}
	}
}

// TestTheExactTestAddsUpUnlikelyOutcomes: compared with sums computed by hand.
func TestTheExactTestAddsUpUnlikelyOutcomes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cells []cell
		p     float64
	}{
		"three of six at 80 %": {[]cell{{3, 4.8}, {3, 1.2}}, 0.0819 + 0.0154 + 0.0015 + 0.0001},
		"the likeliest":        {[]cell{{2, 2}, {2, 2}}, 1},
		"two coins":            {[]cell{{2, 1}, {0, 1}}, 0.5},
		"three sides":          {[]cell{{3, 1}, {0, 1}, {0, 1}}, 3. / 27},
	} {
		if p, ok := exact(tc.cells); !ok || math.Abs(p-tc.p) > 0.0001 {
			t.Errorf("%s: %v, want %v", name, p, tc.p)
		}
	}
	many := make([]cell, 40)
	for i := range many {
		many[i] = cell{3, 3}
	}
	if _, ok := exact(many); ok {
		t.Error("the exact test was used for too many outcomes")
	}
}

func TestProbabilityNeverReadsAsZero(t *testing.T) {
	t.Parallel()
	for p, want := range map[float64]string{
		1: "p 1.0000", 0.0491: "p 0.0491", 0.00002: "p 0.000020", 9e-7: "p < 1e-6", 0: "p < 1e-6",
	} {
		if got := Probability(p); got != want {
			t.Errorf("%g is written %q, want %q", p, got, want)
		}
	}
}
