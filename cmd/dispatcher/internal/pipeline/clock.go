package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/admission"
)

const (
	// clockMemory is how long a reading of the database's clock is preferred over newer, less exact
	// ones. Two clocks whose rates differ by 0.01 % drift by 2 ms in that time.
	clockMemory = 20 * time.Second
	// clockSlack is how far readings may contradict each other. If they differ by more, the database's
	// clock must have been set.
	clockSlack = 3 * time.Millisecond
	// mostWrong caps the assumed error of the estimate when an attempt leaves. With a round trip of a
	// second the error bound is half a second, which would leave no usable time within a window of a
	// second. The two directions usually take about the same time, so the estimate is far better than
	// its bound.
	mostWrong = 250 * time.Millisecond
)

// clock extrapolates the database's clock with this process's monotonic clock, so that deadlines
// and release times need neither a query nor this machine's wall clock.
//
// A reading belongs to some unknown moment between question and answer. Of the recent readings the
// one with the shortest round trip is used, as if the clock had been read in the middle of it. The
// clock filter of NTP does the same (RFC 5905, section 10). So waiting for a lock or a processor
// does no harm. Nor does a far database, if both directions take about the same time.
type clock struct {
	epoch  time.Time                 // of this process; all other times are relative to it
	origin atomic.Pointer[time.Time] // the database's clock at epoch; nil before the first reading
	error  atomic.Int64              // largest possible error of origin, in nanoseconds

	mu           sync.Mutex
	best, former clockReading // guarded by mu: of this and of the previous clockMemory
	began        time.Time    // guarded by mu: start of this clockMemory
}

// clockReading is what one reading says about the database's clock at epoch.
type clockReading struct {
	origin time.Time
	error  time.Duration // largest possible error
}

func newClock() *clock { return &clock{epoch: time.Now()} }

// read records a reading of the database's clock, made at some moment between asked and here. Both
// are of this process's clock with its monotonic reading.
func (c *clock) read(database, asked, here time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	way := max(here.Sub(asked), 0)
	s := clockReading{origin: database.Add(-here.Sub(c.epoch) + way/2), error: way / 2}
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

// contradicts reports whether two readings cannot be of the same clock.
func (s *clockReading) contradicts(o *clockReading) bool {
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
// in. A larger error, as with a far database, makes the span narrower.
func (c *clock) span(r *admission.Release) (leave, latest time.Time) {
	wrong := min(time.Duration(c.error.Load()), mostWrong)
	leave, latest = c.here(r.At), c.here(r.Latest)
	if opens := c.here(r.Opens).Add(wrong); !r.Opens.IsZero() && opens.After(leave) {
		leave = opens
	}
	if closes := c.here(r.Closes).Add(-wrong); !r.Closes.IsZero() && closes.Before(latest) {
		latest = closes
	}
	return leave, latest
}

// deadline is expires by this process's clock, less the possible error of the estimate. From then
// on, nothing of the message may leave. Zero for the zero time.
func (c *clock) deadline(expires time.Time) time.Time {
	if expires.IsZero() {
		return expires
	}
	return c.here(expires).Add(-time.Duration(c.error.Load()))
}

// here is when, by this process's clock, the database's clock shows a time; zero for the zero time.
// Before the first reading it is that time itself.
func (c *clock) here(database time.Time) time.Time {
	origin := c.origin.Load()
	if origin == nil || database.IsZero() {
		return database
	}
	return c.epoch.Add(database.Sub(*origin))
}
