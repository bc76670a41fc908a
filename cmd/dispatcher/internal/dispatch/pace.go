package dispatch

import (
	"context"
	"sync"
	"time"
)

// pacer spreads submits evenly over a second. The limit itself is kept by the shared
// counters; the pacer only keeps one process from sending a second's worth at once.
type pacer struct {
	interval time.Duration // between two units; 0 does not pace

	mu   sync.Mutex
	next time.Time // guarded by mu: when the next unit may leave
}

// pacerSlack is how late a sender may be and still leave at once: sleeping for less
// than a millisecond is not worth a timer.
const pacerSlack = time.Millisecond

func newPacer(perSecond int64) *pacer {
	if perSecond <= 0 {
		return &pacer{}
	}
	return &pacer{interval: time.Second / time.Duration(perSecond)}
}

// wait blocks until units may leave, in the order of the calls, or until ctx ends.
func (p *pacer) wait(ctx context.Context, units int) {
	delay := time.Until(p.reserve(time.Now(), units))
	if delay < pacerSlack {
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// reserve takes the next free moment and moves the schedule on by units.
func (p *pacer) reserve(now time.Time, units int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.next
	if at.Before(now) {
		at = now
	}
	p.next = at.Add(time.Duration(units) * p.interval)
	return at
}
