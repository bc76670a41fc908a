package admission_test

import (
	"testing"
	"time"

	"dispatcher/admission"
)

// TestFreeAtIsWhatFitGives covers windows that begin in the future too.
func TestFreeAtIsWhatFitGives(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		window admission.Window
		later  time.Duration // from now until the window begins
		ahead  bool
		free   int64
	}{
		{admission.Second, 0, false, 10},
		{admission.Second, 7 * time.Second, false, 10}, // another process has a longer commit latency
		{admission.Second, 8 * time.Second, true, 0},
		{admission.Second, 48 * time.Hour, true, 0},
		{admission.Minute, 0, false, 10},
		{admission.Minute, 48 * time.Hour, true, 10},
		{admission.Day, 48 * time.Hour, true, 10},
	} {
		l := admission.Limit{Window: c.window, Max: 10}
		counter := admission.Counter{Limit: l, Max: l.Max, Start: now.Add(c.later)}
		if counter.Ahead(now) != c.ahead || counter.FreeAt(now) != c.free {
			t.Errorf("%s begins in %s: ahead %t, free %d", c.window, c.later, counter.Ahead(now),
				counter.FreeAt(now))
		}
		m := &admission.Moment{Now: now, Earliest: now, Zone: time.UTC}
		account := []admission.Account{{Counter: &counter, Rate: 1}}
		_, exclusion := admission.Fit(m, account, &admission.Need{Segments: 1})
		if (exclusion == nil) != (c.free > 0) {
			t.Errorf("%s begins in %s: %+v", c.window, c.later, exclusion)
		}
	}
}

// TestRestartIsTheRunningWindowOrTheNextSecond covers a second that has just begun too.
func TestRestartIsTheRunningWindowOrTheNextSecond(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 3600)
	now := time.Date(2026, 11, 21, 23, 10, 30, 5, time.UTC)
	for window, want := range map[admission.Window]time.Time{
		admission.Second: time.Date(2026, 11, 21, 23, 10, 31, 0, time.UTC),
		admission.Minute: time.Date(2026, 11, 21, 23, 10, 0, 0, time.UTC),
		admission.Hour:   time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC),
		admission.Day:    time.Date(2026, 11, 22, 0, 0, 0, 0, zone),
	} {
		if got := window.Restart(now, zone); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", window, got, want)
		}
	}
	whole := now.Truncate(time.Second)
	if got := admission.Second.Restart(whole, zone); !got.Equal(whole.Add(time.Second)) {
		t.Errorf("at the beginning of a second: %s", got)
	}
}
