package tier

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestATestStartsWithRoomInItsWindow(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation(business)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		now    string // in July, one hour ahead of UTC
		length time.Duration
		want   time.Duration
	}{
		"early in a minute": {"10:30:39", time.Minute, 0},
		"late in a minute":  {"10:30:41", time.Minute, 19 * time.Second},
		"early in an hour":  {"10:58:59", time.Hour, 0},
		"late in an hour":   {"10:59:30", time.Hour, 30 * time.Second},
		"early in a day":    {"23:54:59", 24 * time.Hour, 0},
		"late in a day":     {"23:58:00", 24 * time.Hour, 3 * time.Minute},
		"a day has begun":   {"00:00:10", 24 * time.Hour, 50 * time.Second},
		"midnight of UTC":   {"00:58:00", 24 * time.Hour, 0},
	} {
		now, err := time.ParseInLocation(time.DateTime, "2026-07-21 "+c.now, zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := untilSteady(now, c.length); got != c.want {
			t.Errorf("%s: waits %s, want %s", name, got, c.want)
		}
	}
	synctest.Test(t, func(t *testing.T) { // its clock begins at midnight of UTC
		time.Sleep(time.Hour - time.Second)
		OneWindow(t, time.Hour)
		if now := time.Now().UTC(); now.Hour() != 1 || now.Minute() != 0 {
			t.Errorf("it starts at %s", now)
		}
	})
}
