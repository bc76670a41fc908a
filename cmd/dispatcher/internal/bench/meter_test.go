package bench

import (
	"fmt"
	"testing"
	"time"
)

// TestTheRateLeavesTheWarmUpOut: of 100 messages the first twenty take two seconds, the others
// three, and their receipts five.
func TestTheRateLeavesTheWarmUpOut(t *testing.T) {
	t.Parallel()
	m, began := &meter{}, time.Now()
	for i := range 101 {
		after := time.Duration(i) * 100 * time.Millisecond
		if i > 20 {
			after = 2*time.Second + time.Duration(i-20)*37500*time.Microsecond
		}
		m.add(fmt.Sprintf("%d %d text", i, began.UnixNano()), began.Add(after))
	}
	if got := m.rate(); got < 26.6 || got > 26.7 {
		t.Errorf("%v messages/s", got)
	}
	if m.end(began.Add(7 * time.Second)); m.rate() < 15.9 || m.rate() > 16.1 {
		t.Errorf("%v messages/s with receipts", m.rate())
	}
}
