package bench

import (
	"testing"
	"time"
)

// TestTheRateOfReceiptsLeavesTheWarmUpOut: of 100 messages the first ten take a second and the
// other 90 three.
func TestTheRateOfReceiptsLeavesTheWarmUpOut(t *testing.T) {
	t.Parallel()
	m, began := &meter{}, time.Now()
	for _, k := range []struct {
		count int
		after time.Duration
	}{
		{0, 0},
		{0, 900 * time.Millisecond},
		{10, time.Second},
		{40, 2 * time.Second},
		{40, 2500 * time.Millisecond}, // nothing new
		{100, 4 * time.Second},
		{100, 9 * time.Second},
	} {
		m.note(k.count, began.Add(k.after))
	}
	if got := m.rate(true); got != 30 { // from the 40th at 2 s to the last one at 4 s
		t.Errorf("%v messages/s", got)
	}
}
