package dispatch

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTheQuickestReadingOfTheClockCounts: readings come through different delays, and one whose process had to wait.
func TestTheQuickestReadingOfTheClockCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ahead = time.Minute // of this machine's clock
		c := newClock()
		if got := c.now(); !got.Equal(time.Now()) {
			t.Errorf("before the first reading it shows %s", got)
		}
		if !c.here(time.Time{}).IsZero() {
			t.Error("the zero time has a place")
		}
		for i, delay := range []time.Duration{20, 3, 90, 2, 50, 400} {
			asked := time.Now()
			read := asked.Add(ahead)
			time.Sleep(delay * time.Millisecond)
			c.read(read, asked, time.Now())
			want := []time.Duration{20, 3, 3, 2, 2, 2}[i] * time.Millisecond
			if behind := time.Now().Add(ahead).Sub(c.now()); behind != want {
				t.Errorf("reading %d: %s behind the database, want %s", i, behind, want)
			}
		}
		at := time.Now().Add(ahead + time.Second)
		if got := c.here(at).Sub(time.Now()); got != time.Second+2*time.Millisecond {
			t.Errorf("a place in a second has come after %s", got)
		}
	})
}

// TestTheClockFollowsOneThatWasSet: a step back counts at once, although it is what a slow reading looks like; so does one
// ahead, and drift once the old readings are old.
func TestTheClockFollowsOneThatWasSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, step := newClock(), time.Duration(0)
		read := func(name string, delay time.Duration, want time.Duration) {
			asked := time.Now()
			time.Sleep(delay)
			c.read(time.Now().Add(step), asked, time.Now())
			if behind := time.Now().Add(step).Sub(c.now()); behind != want {
				t.Errorf("%s: %s behind, want %s", name, behind, want)
			}
		}
		read("the first", 0, 0)
		step = -time.Hour
		read("an hour back", 10*time.Millisecond, 0)
		step = time.Hour
		read("two hours ahead", 10*time.Millisecond, 0)
		step -= time.Millisecond
		read("a little drift", 10*time.Millisecond, -time.Millisecond)
		time.Sleep(clockMemory + time.Second)
		read("soon after", 10*time.Millisecond, -time.Millisecond)
		time.Sleep(clockMemory + time.Second)
		read("forgotten", 10*time.Millisecond, 0)
		step -= time.Millisecond
		time.Sleep(time.Hour)
		read("after a quiet hour", 10*time.Millisecond, 0)
	})
}
