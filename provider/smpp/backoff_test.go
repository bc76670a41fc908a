package smpp

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBackoffGrowsBetweenItsBounds(t *testing.T) {
	t.Parallel()
	low, high := 500*time.Millisecond, 30*time.Second
	for failures, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 4: 16 * time.Second, 5: high, 1000: high} {
		if got := backoff(failures, low, high, 1); got != want {
			t.Errorf("ceiling after %d failures is %v, want %v", failures, got, want)
		}
		if got := backoff(failures, low, high, 0); got != low {
			t.Errorf("floor after %d failures is %v, want %v", failures, got, low)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		low := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "low"))
		high := low + time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "span"))
		d := backoff(rapid.IntRange(0, 1<<40).Draw(t, "failures"), low, high, rapid.Float64Range(0, 0.999999).Draw(t, "random"))
		if d < low || d > high {
			t.Fatalf("%v is outside %v to %v", d, low, high)
		}
	})
}
