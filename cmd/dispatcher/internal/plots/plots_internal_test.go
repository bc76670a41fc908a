package plots

import (
	"math"
	"testing"
)

func TestAxesHaveRoundSteps(t *testing.T) {
	t.Parallel()
	for top, want := range map[float64]float64{
		207: 50, 200: 20, 1522.54: 200, 3.62: 0.5, 0.031: 0.005, 10: 1, 0: 1e-7,
	} {
		if got := roundStep(top); math.Abs(got-want) > want/1e6 {
			t.Errorf("up to %v: %v, want %v", top, got, want)
		}
	}
}
