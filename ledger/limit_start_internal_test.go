package ledger

import (
	"testing"
	"time"

	"dispatcher/admission"
)

// TestADayIsCutAnewOnlyByAnotherZone: nothing is counted for a limit that nobody has used since its
// day was over.
func TestADayIsCutAnewOnlyByAnotherZone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 10, 15, 0, 0, 0, time.UTC)
	tokyo := time.FixedZone("Tokyo", 9*60*60)
	for name, c := range map[string]struct {
		start time.Time
		zone  *time.Location
		want  bool
	}{
		"today":                  {admission.Day.Start(now, time.UTC), time.UTC, false},
		"today, in another zone": {admission.Day.Start(now, time.UTC), tokyo, true},
		"yesterday": {
			admission.Day.Start(now.Add(-24*time.Hour), time.UTC),
			time.UTC, false,
		},
		"last week": {
			admission.Day.Start(now.Add(-7*24*time.Hour), time.UTC),
			time.UTC, false,
		},
		"yesterday, in another zone": {
			admission.Day.Start(now.Add(-24*time.Hour), time.UTC),
			tokyo, true,
		},
		"a window that was never opened": {time.Unix(0, 0), tokyo, false},
		"tomorrow":                       {now.Add(24 * time.Hour), tokyo, false},
	} {
		if got := (limitWindow{start: c.start, now: now}).recut(admission.Day,
			c.zone); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
