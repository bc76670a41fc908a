package report

import (
	"math"
	"testing"
)

func TestJudgeFollowsTheChiSquareTable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		counts   []int64
		expected []float64
		p        float64
		verdict  string
	}{
		"exact":                   {[]int64{25, 15, 60}, []float64{25, 15, 60}, 1, Kept},
		"critical value of 5 %":   {[]int64{1000 + 44, 1000 - 44}, []float64{1000, 1000}, 0.0491, Kept},
		"far off":                 {[]int64{400, 150, 450}, []float64{250, 150, 600}, 0, Deviates},
		"a channel of weight 0":   {[]int64{100, 0}, []float64{100, 0}, 1, OneWay},
		"weight 0 that got some":  {[]int64{99, 100, 1}, []float64{100, 100, 0}, 0, Deviates},
		"too few for a statement": {[]int64{3, 0, 1}, []float64{1, 0.6, 2.4}, 1, TooFew},
	} {
		p, verdict := Judge(tc.counts, tc.expected)
		if math.Abs(p-tc.p) > 0.0005 || verdict != tc.verdict {
			t.Errorf("%s: p %.4f %s, want %.4f %s", name, p, verdict, tc.p, tc.verdict)
		}
	}
}
