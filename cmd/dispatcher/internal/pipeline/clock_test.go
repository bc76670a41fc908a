package pipeline

import (
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/admission"
)

// reading reads the clock of a database that is ahead; there and back are the durations of the two
// ways.
func reading(c *clock, ahead, there, back time.Duration) {
	asked := time.Now()
	time.Sleep(there)
	database := time.Now().Add(ahead)
	time.Sleep(back)
	c.read(database, asked, time.Now())
}

// TestTheShortestWayToTheClockCounts: readings take different times, and one waited for a lock.
func TestTheShortestWayToTheClockCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ahead = time.Minute
		c := newClock()
		if got := c.now(); !got.Equal(time.Now()) {
			t.Errorf("before the first reading it shows %s", got)
		}
		if !c.here(time.Time{}).IsZero() {
			t.Error("the zero time has a release time")
		}
		for i, way := range []struct{ there, back, behind int }{ // milliseconds
			{100, 100, 0}, // far away, and still right
			{400, 2, 0},   // waited for a lock: the reading before was quicker
			{2, 6, 2},     // the way back takes longer
			{80, 2, 2},
			{1, 1, 0},
			{3, 200, 0},
		} {
			reading(c, ahead, millis(way.there), millis(way.back))
			if behind := time.Now().Add(ahead).Sub(c.now()); behind != millis(way.behind) {
				t.Errorf("reading %d: %s behind the database, want %s", i, behind,
					millis(way.behind))
			}
		}
		at := time.Now().Add(ahead + time.Second)
		if got := time.Until(c.here(at)); got != time.Second {
			t.Errorf("a slot of a second came after %s", got)
		}
	})
}

// TestTheClockFollowsOneThatWasSet: a step in either direction counts at once, drift when the old
// readings have expired.
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

// TestAFarDatabaseNarrowsWindowsAndNotThePace: a reading that took 200 ms may be wrong by 100 ms
// either way. That much stays unused at both ends of a window. A slot in its middle is as wide as
// ever; otherwise a sliding limit would let nothing pass.
func TestAFarDatabaseNarrowsWindowsAndNotThePace(t *testing.T) {
	t.Parallel()
	opens, closes := noon, noon.Add(time.Second)
	for _, c := range []struct {
		name                     string
		at, latest, leave, until time.Duration // after opens
	}{
		{"the whole window", 0, time.Second, millis(100), millis(900)},
		{"its beginning", millis(20), millis(50), millis(100), millis(50)},
		{"its middle", millis(500), millis(530), millis(500), millis(530)},
		{"its end", millis(890), millis(920), millis(890), millis(900)},
	} {
		clock := newClock()
		asked := clock.epoch.Add(time.Hour)
		clock.read(noon, asked, asked.Add(millis(200)))
		leave, latest := clock.span(&admission.Release{
			At:     opens.Add(c.at),
			Latest: opens.Add(c.latest), Opens: opens, Closes: closes,
		})
		if from, until := leave.Sub(clock.here(opens)),
			latest.Sub(clock.here(opens)); from != c.leave || until != c.until {
			t.Errorf("%s: from %s until %s, want %s until %s", c.name, from, until,
				c.leave, c.until)
		}
		clock.read(noon, asked, asked) // known exactly
		leave, latest = clock.span(&admission.Release{
			At:     opens.Add(c.at),
			Latest: opens.Add(c.latest), Opens: opens, Closes: closes,
		})
		if from, until := leave.Sub(clock.here(opens)),
			latest.Sub(clock.here(opens)); from != c.at || until != c.latest {
			t.Errorf("%s: from %s until %s with a clock known exactly", c.name, from, until)
		}
		if leave, latest := clock.span(&admission.Release{}); !leave.IsZero() || !latest.IsZero() {
			t.Errorf("no release time became %s to %s", leave, latest)
		}
	}
}

// TestADatabaseASecondAwayLeavesTimeToSend: its clock may be wrong by half a second. Then no moment
// would be certain to be within a window of a second.
func TestADatabaseASecondAwayLeavesTimeToSend(t *testing.T) {
	t.Parallel()
	clock := newClock()
	asked := clock.epoch.Add(time.Hour)
	clock.read(noon, asked, asked.Add(time.Second))
	opens, closes := noon, noon.Add(time.Second)
	leave, latest := clock.span(&admission.Release{
		At: opens, Latest: closes, Opens: opens,
		Closes: closes,
	})
	if from, until := leave.Sub(clock.here(opens)),
		latest.Sub(clock.here(opens)); from != mostWrong || until != time.Second-mostWrong {
		t.Errorf("from %s until %s", from, until)
	}
}
