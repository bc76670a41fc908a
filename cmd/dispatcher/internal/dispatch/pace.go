package dispatch

import (
	"context"
	"sync"
	"time"

	"dispatcher/admission"
)

// pacer spreads submits evenly over a second. The limit itself is kept by the shared
// counters; the pacer only keeps one process from sending a second's worth at once.
type pacer struct {
	mu       sync.Mutex
	interval time.Duration  // guarded by mu: between two units; 0 does not pace
	unit     admission.Unit // guarded by mu
	next     time.Time      // guarded by mu: when the next unit may leave
	changed  chan struct{}  // guarded by mu: closed when another rate comes into force
}

// pacerSlack is how late a sender may be and still leave at once: sleeping for less
// than a millisecond is not worth a timer.
const pacerSlack = time.Millisecond

func newPacer(perSecond int64, unit admission.Unit) *pacer {
	return &pacer{interval: intervalOf(perSecond), unit: unit, changed: make(chan struct{})}
}

// intervalOf is 0 for a rate of 0, which is none.
func intervalOf(perSecond int64) time.Duration {
	if perSecond <= 0 {
		return 0
	}
	return time.Second / time.Duration(perSecond)
}

// set brings another rate into force. Whoever waits under the old one takes a new place under the
// new one, the first of them one new interval from now.
func (p *pacer) set(now time.Time, perSecond int64, unit admission.Unit) {
	interval := intervalOf(perSecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	if interval == p.interval && unit == p.unit {
		return
	}
	p.interval, p.unit = interval, unit
	if at := now.Add(interval); p.next.After(now) {
		p.next = at
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait blocks until a submit of so many segments may leave, in the order of the calls. It is false
// when that is not before the deadline or the end of stop.
func (p *pacer) wait(stop context.Context, deadline time.Time, segments int) bool {
	for {
		at, changed := p.reserve(time.Now(), segments)
		inTime := !at.After(deadline)
		if !inTime {
			at = deadline // until then another rate may still come into force
		}
		delay := time.Until(at)
		if inTime && delay < pacerSlack {
			return stop.Err() == nil
		}
		timer := time.NewTimer(delay)
		select {
		case <-changed:
			timer.Stop()
		case <-timer.C:
			return inTime
		case <-stop.Done():
			timer.Stop()
			return false
		}
	}
}

// reserve takes the next free moment and moves the schedule on by a submit. The place is void
// when changed is closed.
func (p *pacer) reserve(now time.Time, segments int) (at time.Time, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.interval == 0 {
		return now, nil
	}
	at = p.next
	if at.Before(now) {
		at = now
	}
	units := 1
	if p.unit == admission.Segments {
		units = segments
	}
	p.next = at.Add(time.Duration(units) * p.interval)
	return at, p.changed
}
