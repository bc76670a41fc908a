package dispatch

import (
	"sync"
	"sync/atomic"
	"time"
)

// clockMemory is how long a reading of the database's clock counts beside newer ones. Two clocks
// that are a ten-thousandth apart drift by a millisecond in it.
const clockMemory = 5 * time.Second

// clock carries the database's clock on by this process's monotonic one, so that deadlines
// and places need neither a question to the database nor this machine's wall clock.
//
// A reading is old by the time that it took to get here, which is never known. Of the readings of
// the last while the one that was quickest counts, as in the clock filter of NTP (RFC 5905, section 10). So the
// clock is never ahead of the database's, and nothing leaves before its place; it is behind by the
// quickest way from the database to here, not by that of one reading that had to wait for a processor.
type clock struct {
	epoch  time.Time                 // of this process; all else is told relative to it
	origin atomic.Pointer[time.Time] // the database's clock at epoch; nil before the first reading

	mu           sync.Mutex
	best, former time.Time // guarded by mu: the latest origins by the readings of this and of the last while
	began        time.Time // guarded by mu: this while
}

func newClock() *clock { return &clock{epoch: time.Now()} }

// read notes what the database's clock showed at some moment after asked and before here, both by
// this process's clock with its monotonic reading. A zero asked is long ago.
func (c *clock) read(database, asked, here time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	origin := database.Add(-here.Sub(c.epoch))
	age := here.Sub(c.began)
	switch known := c.origin.Load(); {
	case known == nil, age > 2*clockMemory, !asked.IsZero() && database.Add(-asked.Sub(c.epoch)).Before(*known):
		// Nothing recent to compare with, or the database's clock went back.
		c.best, c.former, c.began = origin, origin, here
	case age > clockMemory:
		c.best, c.former, c.began = origin, c.best, here
	case origin.After(c.best):
		c.best = origin
	}
	latest := c.best
	if c.former.After(latest) {
		latest = c.former
	}
	c.origin.Store(&latest)
}

// now is the database's clock; before the first reading, this machine's.
func (c *clock) now() time.Time {
	origin := c.origin.Load()
	if origin == nil {
		return time.Now().UTC()
	}
	return origin.Add(time.Since(c.epoch))
}

// here is when, by this process's clock, the database's clock shows a time; zero for the zero time.
func (c *clock) here(database time.Time) time.Time {
	origin := c.origin.Load()
	if origin == nil || database.IsZero() {
		return database
	}
	return c.epoch.Add(database.Sub(*origin))
}
