package admission

import "time"

// MaxCommitLatency is the most that Moment.Earliest may lie after Now. When commits take longer,
// attempts miss their release time and come back unsent.
const MaxCommitLatency = 5 * time.Second

// Moment is when and where a decision is made.
type Moment struct {
	// Now is the database's clock, read after all counters were locked.
	Now time.Time
	// Earliest is when an attempt can leave at the earliest: Now plus the commit latency, which counts
	// as at most MaxCommitLatency.
	Earliest time.Time
	Zone     *time.Location
	Worker   Worker
}

// Roll moves a counter into the window from which a decision takes slots, and reports whether it
// moved. For a limit of a second that is the window in which the attempts leave, because the
// provider counts them there, or the one after it, see secondBefore. With a slow database it is
// some seconds after Now. For other limits it is the window that contains Now.
func (m *Moment) Roll(c *Counter) bool { return c.Roll(m.Now.Add(m.ahead(c)), m.Zone) }

// ahead is how long before the start of a window its slots may be taken.
//
// A claim locks the counters for one commit latency. So it gives out release times from Earliest
// until one commit latency later. A counter counts one window, so all these release times must be
// in one window or just before it: the window that contains the middle of that time, or the next
// one if no release time is left in it after Earliest.
func (m *Moment) ahead(c *Counter) time.Duration {
	if c.Window != Second {
		return 0
	}
	return m.commitLatency() + max(m.commitLatency()/2, c.guardTime())
}

// rolls is when the counter moves to its next window.
func (m *Moment) rolls(c *Counter) time.Time { return c.End(m.Zone).Add(-m.ahead(c)) }

// closes is when the last decisions about the counter's window are made; later ones use the next
// window.
func (m *Moment) closes(c *Counter) time.Time {
	return earlier(c.lastRelease(m.Zone).Add(-m.commitLatency()), m.rolls(c))
}

// commitLatency is how long it takes to commit a decision.
func (m *Moment) commitLatency() time.Duration { return max(m.Earliest.Sub(m.Now), 0) }

// reach is how far ahead of Earliest release times are given out: at least to where those of the
// next decision begin.
func (m *Moment) reach() time.Duration { return max(Horizon, m.commitLatency()) }

// farthest is how far ahead of now a process with the longest commit latency takes slots of a
// window.
const farthest = MaxCommitLatency + MaxCommitLatency/2

// near reports whether a release time of the account is near enough; when is the time from which it
// is. If a process with a longer commit latency has rolled the counter forward, all release times
// of its window count as near, since there are no others. A counter that is even farther ahead was
// moved by a clock that has been set back since.
func (m *Moment) near(a *Account, at time.Time) (when time.Time, ok bool) {
	when = at.Add(-m.reach() - m.commitLatency())
	if a.Window == Second && a.Start.After(m.Earliest.Add(m.reach())) {
		when = earlier(when, a.Start.Add(-farthest))
	}
	return when, !when.After(m.Now)
}
