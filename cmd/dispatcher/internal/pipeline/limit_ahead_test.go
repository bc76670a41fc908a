package pipeline

import (
	"testing"
	"time"

	"dispatcher/admission"
)

// TestNothingOfASecondInTheFutureIsFree: the unused rest of a longer window can be used.
func TestNothingOfASecondInTheFutureIsFree(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for window, want := range map[admission.Window]int64{admission.Second: 0, admission.Hour: 7} {
		l := admission.Limit{Window: window, Max: 10}
		c := &admission.Counter{Limit: l, Max: 10, Granted: 3, Start: now.Add(48 * time.Hour)}
		got := limitGaugeOf(c, []admission.Limit{l}, "a", admission.Ease{}, now, time.UTC)
		if got.free != want || got.granted != 3 {
			t.Errorf("%s: %+v, want %d free", window, got, want)
		}
		if end := now.Add(48*time.Hour + time.Duration(window)); !got.end.Equal(end) {
			t.Errorf("%s: its window ends at %s, want %s", window, got.end, end)
		}
	}
}
