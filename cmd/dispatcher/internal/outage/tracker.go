// Package outage keeps the log short while something is away: PostgreSQL, Kafka, a provider. Many
// parts of a process notice the same outage, each of them again and again. The log gets one warning
// when it begins, a reminder now and then while it lasts, and one line when it is over. What each
// part noticed is there at debug level.
//
// Tracker decides what is told and knows no clock; Log writes it.
package outage

import "time"

// Remind is how long it takes at least until an outage that lasts is told again.
const Remind = time.Minute

// Step is what a report means for the log.
type Step uint8

const (
	// Known says nothing new.
	Known Step = iota
	// Began is the first report of an outage.
	Began
	// Lasts is the first report after Remind since the outage was last told.
	Lasts
	// Over is the report that ends an outage.
	Over
)

// Tracker knows what is away. The zero value is ready. It is not safe for concurrent use.
type Tracker struct {
	away map[string]*state
}

// state is one outage.
type state struct {
	since, told, latest time.Time
	reporters           map[string]bool // who found it away and has not found it back
	fault               bool            // nobody will find it back
}

// Down notes that a reporter finds something away, and returns for how long it has been.
func (t *Tracker) Down(what, reporter string, now time.Time) (Step, time.Duration) {
	s := t.away[what]
	if s == nil {
		if t.away == nil {
			t.away = map[string]*state{}
		}
		s = &state{since: now, told: now, latest: now, reporters: map[string]bool{reporter: true}}
		t.away[what] = s
		return Began, 0
	}
	s.reporters[reporter], s.latest = true, now
	if now.Sub(s.told) < Remind {
		return Known, now.Sub(s.since)
	}
	s.told = now
	return Lasts, now.Sub(s.since)
}

// Up notes that a reporter finds something in order. The outage is over when every reporter that
// found it away has done so; the duration is how long it was.
func (t *Tracker) Up(what, reporter string, now time.Time) (Step, time.Duration) {
	s := t.away[what]
	if s == nil {
		return Known, 0
	}
	delete(s.reporters, reporter)
	if len(s.reporters) > 0 {
		return Known, now.Sub(s.since)
	}
	delete(t.away, what)
	return Over, now.Sub(s.since)
}

// Fault notes something that goes wrong and has no end that anybody would report. It counts as a
// new one when it did not come up for Remind.
func (t *Tracker) Fault(what string, now time.Time) (Step, time.Duration) {
	for key, s := range t.away {
		if s.fault && now.Sub(s.latest) >= Remind {
			delete(t.away, key)
		}
	}
	step, lasted := t.Down(what, "", now)
	t.away[what].fault = true
	return step, lasted
}

// Forget drops a reporter that reports no more, such as a connection that was closed on purpose.
func (t *Tracker) Forget(what, reporter string) {
	if s := t.away[what]; s != nil {
		if delete(s.reporters, reporter); len(s.reporters) == 0 {
			delete(t.away, what)
		}
	}
}

// Since is when an outage began; false when there is none.
func (t *Tracker) Since(what string) (time.Time, bool) {
	if s := t.away[what]; s != nil {
		return s.since, true
	}
	return time.Time{}, false
}
