package provider_test

import (
	"testing"
	"time"

	"dispatcher/provider"
)

func TestASubmissionIsTooLateFromItsLatestOn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		latest time.Time
		want   bool
	}{
		{time.Time{}, false}, {now.Add(1), false}, {now, true}, {now.Add(-time.Hour), true},
	} {
		if s := (provider.Submission{Latest: c.latest}); s.TooLate(now) != c.want {
			t.Errorf("latest in %v: too late is %t", c.latest.Sub(now), !c.want)
		}
	}
}
