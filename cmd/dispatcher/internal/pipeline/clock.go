package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/admission"
)

const (
	// clockMemory is how long a reading of the database's clock counts beside newer ones. Two
	// clocks that are a ten-thousandth apart drift by two milliseconds in it.
	clockMemory = 20 * time.Second
	// clockSlack is by how much readings may contradict each other before the database's clock
	// must have been set.
	clockSlack = 3 * time.Millisecond
	// mostWrong is the most that the estimate of the database's clock is held to be wrong by when
	// an attempt leaves. With a database that is a second away it may be wrong by half a second,
	// which would leave no time within a second at all. The ways there and back usually take about
	// as long as each other, so the estimate is far better than its bound.
	mostWrong = 250 * time.Millisecond
)

// clock carries the database's clock on by this process's monotonic one, so that deadlines and
// release times need neither a question to the database nor this machine's wall clock.
//
// A reading belongs to some moment between question and answer, which is never known. Of the recent
// readings the one with the shortest round trip counts, as if the clock had been read in the middle
// of it; the clock filter of NTP does the same (RFC 5905, section 10). So it does no harm to wait
// for a lock or a processor, nor that a database is far away, if the way there takes about as long
// as the way back.
type clock struct {
	epoch  time.Time                 // of this process; all else is told relative to it
	origin atomic.Pointer[time.Time] // the database's clock at epoch; nil before the first reading
	error  atomic.Int64              // by how many nanoseconds origin is wrong at most

	mu           sync.Mutex
	best, former sighting  // guarded by mu: of this and of the last while
	began        time.Time // guarded by mu: this while
}

// sighting is what one reading tells about the database's clock at epoch.
type sighting struct {
	origin time.Time
	error  time.Duration // it is wrong by so much at most
}

func newClock() *clock { return &clock{epoch: time.Now()} }

// read notes what the database's clock showed at some moment between asked and here, both by
// this process's clock with its monotonic reading.
func (c *clock) read(database, asked, here time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	way := max(here.Sub(asked), 0)
	s := sighting{origin: database.Add(-here.Sub(c.epoch) + way/2), error: way / 2}
	age := here.Sub(c.began)
	switch {
	case c.origin.Load() == nil, age > 2*clockMemory, s.contradicts(&c.best),
		s.contradicts(&c.former):
		c.best, c.former, c.began = s, s, here // nothing recent, or the database's clock was set
	case age > clockMemory:
		c.best, c.former, c.began = s, c.best, here
	case s.error <= c.best.error:
		c.best = s
	}
	now := c.best
	if c.former.error < c.best.error {
		now = c.former
	}
	c.error.Store(int64(now.error))
	c.origin.Store(&now.origin)
}

// contradicts reports whether two sightings cannot be of one and the same clock.
func (s *sighting) contradicts(o *sighting) bool {
	return s.origin.Sub(o.origin).Abs() > s.error+o.error+clockSlack
}

// now is the database's clock; before the first reading, this machine's.
func (c *clock) now() time.Time {
	origin := c.origin.Load()
	if origin == nil {
		return time.Now().UTC()
	}
	return origin.Add(time.Since(c.epoch))
}

// span is when an attempt may leave, by this process's clock. If the estimate of the database's
// clock is wrong by at most mostWrong, the attempt leaves within the windows that it was counted
// in. The farther away the database is, the narrower is the span.
func (c *clock) span(p *admission.Release) (leave, latest time.Time) {
	wrong := min(time.Duration(c.error.Load()), mostWrong)
	leave, latest = c.here(p.At), c.here(p.Latest)
	if opens := c.here(p.Opens).Add(wrong); !p.Opens.IsZero() && opens.After(leave) {
		leave = opens
	}
	if closes := c.here(p.Closes).Add(-wrong); !p.Closes.IsZero() && closes.Before(latest) {
		latest = closes
	}
	return leave, latest
}

// deadline is from when on, by this process's clock, nothing of a message may leave that expires at
// a time of the database's clock, however wrong the estimate of that clock is; zero for the zero
// time.
func (c *clock) deadline(expires time.Time) time.Time {
	if expires.IsZero() {
		return expires
	}
	return c.here(expires).Add(-time.Duration(c.error.Load()))
}

// here is when, by this process's clock, the database's clock shows a time; zero for the zero time.
func (c *clock) here(database time.Time) time.Time {
	origin := c.origin.Load()
	if origin == nil || database.IsZero() {
		return database
	}
	return c.epoch.Add(database.Sub(*origin))
}
