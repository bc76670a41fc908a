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
		"only one cell is left":   {[]int64{1, 9}, []float64{2, 8}, 1, TooFew},
		"nothing happened":        {[]int64{0, 0}, []float64{0, 0}, 1, OneWay},
		// 1.3 and 3.7 expect 5 together: x = (10-5)^2/5 + (90-95)^2/95.
		"small ones are pooled": {[]int64{9, 1, 90}, []float64{1.3, 3.7, 95}, 0.0218, Kept},
	} {
		p, verdict := Judge(tc.counts, tc.expected)
		if math.Abs(p-tc.p) > 0.0005 || verdict != tc.verdict {
			t.Errorf("%s: p %.4f %s, want %.4f %s", name, p, verdict, tc.p, tc.verdict)
		}
	}
}
