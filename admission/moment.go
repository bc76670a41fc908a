package admission

import "time"

// MaxCommitLatency is the most that Moment.Earliest may lie ahead of Now: a database that takes
// longer to make a decision durable sends what was decided too late, and that goes back.
const MaxCommitLatency = 5 * time.Second

// Moment is when and where a decision is made.
type Moment struct {
	// Now is the database's clock, read after all counters were locked.
	Now time.Time
	// Earliest is when an attempt could leave at the earliest: Now and the time that it
	// takes to make the decision durable, at most MaxCommitLatency.
	Earliest time.Time
	Zone     *time.Location
	Worker   Worker
}

// Roll moves a counter into the window that a decision takes slots of, and reports whether it
// moved. Of a limit of a second that is the window in which the attempts leave, which is the one
// that the provider counts them in: with a slow database they leave some seconds after Now. All
// other windows are those that contain Now.
func (m *Moment) Roll(c *Counter) bool { return c.Roll(m.Now.Add(m.ahead(c)), m.Zone) }

// ahead is how long before its beginning a window may be taken slots of.
//
// The counters stay locked for a commit latency, so one decision gives away the release times of
// that long, from Earliest on. They have to be of one window, since a counter counts one: the one
// that holds the middle of them, or the next where this one has none left.
func (m *Moment) ahead(c *Counter) time.Duration {
	if c.Window != Second {
		return 0
	}
	return m.commitLatency() + max(m.commitLatency()/2, c.guardTime())
}

// rolls is when the counter moves on to its next window.
func (m *Moment) rolls(c *Counter) time.Time { return c.End(m.Zone).Add(-m.ahead(c)) }

// closes is when the last decisions about the counter's window are made: what is decided later
// leaves in the next.
func (m *Moment) closes(c *Counter) time.Time {
	return earlier(c.lastRelease(m.Zone).Add(-m.commitLatency()), m.rolls(c))
}

// commitLatency is how long it takes to make a decision durable.
func (m *Moment) commitLatency() time.Duration { return max(m.Earliest.Sub(m.Now), 0) }

// reach is how far ahead of Earliest release times are given away: at least to where those of the
// next decision begin.
func (m *Moment) reach() time.Duration { return max(Horizon, m.commitLatency()) }

// farthest is how far ahead of now a process with the longest commit latency takes slots of a
// window.
const farthest = MaxCommitLatency + MaxCommitLatency/2

// near reports whether a release time of the account is not too far ahead; when is the time from
// which it no longer is. If a process with a longer commit latency has moved the counter on, all
// release times of its window are near, since there are no others. A counter that is even farther
// ahead was moved by a clock that has stepped back since.
func (m *Moment) near(a *Account, at time.Time) (when time.Time, ok bool) {
	when = at.Add(-m.reach() - m.commitLatency())
	if a.Window == Second && a.Start.After(m.Earliest.Add(m.reach())) {
		when = earlier(when, a.Start.Add(-farthest))
	}
	return when, !when.After(m.Now)
}
