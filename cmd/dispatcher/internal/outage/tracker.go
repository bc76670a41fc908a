// Package outage keeps the log short while PostgreSQL, Kafka or a provider is away. Many parts of a
// process notice the same outage repeatedly. The log gets one warning when it begins, a reminder
// each minute, and one line when it is over. Single reports are logged at debug level.
//
// Tracker decides and is pure; Log writes; Probe checks whether something is away.
package outage

import "time"

// Remind is the shortest time between two lines about an outage that lasts.
const Remind = time.Minute

// Step says what a report changes, and so whether the log gets a line.
type Step uint8

const (
	// Known means that the report changes nothing.
	Known Step = iota
	// Began is the first report of an outage.
	Began
	// Lasts is the first report after Remind since the last line about the outage.
	Lasts
	// Over is the report that ends an outage.
	Over
)

// Tracker tracks outages. The zero value is ready. It is not safe for concurrent use.
type Tracker struct {
	away map[string]*state
}

// state is one outage.
type state struct {
	since, told, latest time.Time
	reporters           map[string]bool // reported Down and not Up since
	fault               bool            // nobody will report its end
}

// Down records that something is away for a reporter, and returns how long it has been away.
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

// Up records that something works for a reporter. The outage is over when it works for every
// reporter that reported it away; then the duration is how long the outage lasted.
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

// Fault records a failure whose end nobody will report. After Remind without it, it counts as a new
// one.
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

// Forget drops a reporter that will not report again, such as a connection that was closed on
// purpose.
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
