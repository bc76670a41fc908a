package dispatch

import (
	"testing"
	"testing/synctest"
	"time"
)

// reading asks a database whose clock is ahead by some time; there and back are the two ways.
func reading(c *clock, ahead, there, back time.Duration) {
	asked := time.Now()
	time.Sleep(there)
	database := time.Now().Add(ahead)
	time.Sleep(back)
	c.read(database, asked, time.Now())
}

// TestTheShortestWayToTheClockCounts: readings come by different ways, and one had to wait for a lock.
func TestTheShortestWayToTheClockCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ahead = time.Minute
		c := newClock()
		if got := c.now(); !got.Equal(time.Now()) {
			t.Errorf("before the first reading it shows %s", got)
		}
		if !c.here(time.Time{}).IsZero() {
			t.Error("the zero time has a place")
		}
		for i, way := range []struct{ there, back, behind int }{ // milliseconds
			{100, 100, 0}, // far away, and still right
			{400, 2, 0},   // it waited for a lock: the one before was quicker
			{2, 6, 2},     // the way back takes longer
			{80, 2, 2},
			{1, 1, 0},
			{3, 200, 0},
		} {
			reading(c, ahead, millis(way.there), millis(way.back))
			if behind := time.Now().Add(ahead).Sub(c.now()); behind != millis(way.behind) {
				t.Errorf("reading %d: %s behind the database, want %s", i, behind, millis(way.behind))
			}
		}
		at := time.Now().Add(ahead + time.Second)
		if got := time.Until(c.here(at)); got != time.Second {
			t.Errorf("a place in a second has come after %s", got)
		}
	})
}

// TestTheClockFollowsOneThatWasSet: a step in either direction counts at once, drift once the old readings
// are old.
func TestTheClockFollowsOneThatWasSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		read := func(name string, ahead, want time.Duration) {
			reading(c, ahead, 5*time.Millisecond, 5*time.Millisecond)
			if behind := time.Now().Add(ahead).Sub(c.now()); behind != want {
				t.Errorf("%s: %s behind, want %s", name, behind, want)
			}
		}
		reading(c, 0, time.Millisecond, time.Millisecond)
		read("the first", 0, 0)
		read("an hour back", -time.Hour, 0)
		read("two hours ahead", time.Hour, 0)
		reading(c, time.Hour, time.Millisecond, time.Millisecond)
		drifted := time.Hour - time.Millisecond
		read("a little drift", drifted, -time.Millisecond)
		time.Sleep(clockMemory + time.Second)
		read("soon after", drifted, -time.Millisecond)
		time.Sleep(clockMemory + time.Second)
		read("forgotten", drifted, 0)
		time.Sleep(time.Hour)
		read("after a quiet hour", drifted-time.Millisecond, 0)
	})
}

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// TestAFarDatabaseNarrowsThePlaces: what is read over 200 ms may be wrong by 100 ms either way.
func TestAFarDatabaseNarrowsThePlaces(t *testing.T) {
	t.Parallel()
	for _, way := range []time.Duration{0, 200 * time.Millisecond} {
		c := newClock()
		asked := c.epoch.Add(time.Hour)
		c.read(noon, asked, asked.Add(way))
		from, until := noon.Add(time.Second), noon.Add(2*time.Second)
		leave, latest := c.within(from, until)
		if got := leave.Sub(c.here(from)); got != way/2 {
			t.Errorf("over %s it leaves %s later", way, got)
		}
		if got := c.here(until).Sub(latest); got != way/2 {
			t.Errorf("over %s it must have left %s sooner", way, got)
		}
		if leave, latest := c.within(time.Time{}, time.Time{}); !leave.IsZero() || !latest.IsZero() {
			t.Errorf("no place became %s to %s", leave, latest)
		}
	}
}
