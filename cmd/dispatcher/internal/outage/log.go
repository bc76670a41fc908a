package outage

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Report says that something is away or failed.
type Report struct {
	// What is the thing that is away, such as "PostgreSQL"; sentences in the log begin with it.
	// Reporter is the part of the process that noticed.
	What, Reporter string
	// Sentence says what that means for an operator, and what to do.
	Sentence string
	// Err is the error of the driver; it is logged at debug level.
	Err error
	// Fields adds fields to the warning; may be nil.
	Fields func(*zerolog.Event)
}

// Log writes the lines that a Tracker decides on. It is safe for concurrent use.
type Log struct {
	log zerolog.Logger

	mu      sync.Mutex
	tracker Tracker // guarded by mu
}

// NewLog returns a Log that writes to log.
func NewLog(log zerolog.Logger) *Log { return &Log{log: log} }

// Down reports that something is away.
func (l *Log) Down(r Report) Step {
	l.mu.Lock()
	defer l.mu.Unlock()
	step, lasted := l.tracker.Down(r.What, r.Reporter, time.Now())
	if step == Began || step == Lasts {
		l.warn(r, step, lasted).Msg(r.Sentence)
	}
	l.detail(r)
	return step
}

// Fault reports a failure whose end nobody will report. Failures with different errors are
// different faults.
func (l *Log) Fault(r Report) {
	l.detail(r)
	l.fault(r)
}

// fault is Fault without logging the error at debug level.
func (l *Log) fault(r Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := r.What
	if r.Err != nil {
		key += ": " + r.Err.Error()
	}
	if step, lasted := l.tracker.Fault(key, time.Now()); step != Known {
		l.warn(r, step, lasted).Err(r.Err).Msg(r.Sentence)
	}
}

// warn begins a warning.
func (l *Log) warn(r Report, step Step, lasted time.Duration) *zerolog.Event {
	event := l.log.Warn().Str("what", r.What)
	if step == Lasts {
		event = event.Stringer("for", round(lasted))
	}
	if r.Fields != nil {
		r.Fields(event)
	}
	return event
}

// detail writes the error of the driver at debug level.
func (l *Log) detail(r Report) {
	l.log.Debug().
		Err(r.Err).
		Str("what", r.What).
		Str("where", r.Reporter).
		Msg("cannot be done now, trying again")
}

// Up reports that something works for a reporter.
func (l *Log) Up(what, reporter string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if step, lasted := l.tracker.Up(what, reporter, time.Now()); step == Over {
		l.log.Info().Str("what", what).Msg(what + " is back after " + round(lasted).String())
	}
}

// Forget drops a reporter that will not report again.
func (l *Log) Forget(what, reporter string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tracker.Forget(what, reporter)
}

// Since is when an outage began; false when there is none.
func (l *Log) Since(what string) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tracker.Since(what)
}

// round rounds a duration to the second, a shorter one to the millisecond.
func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}
