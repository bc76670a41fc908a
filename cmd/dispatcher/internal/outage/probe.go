package outage

import (
	"context"
	"sync"
	"time"
)

// Failures without an outage are reported after strikes checks that found nothing away, because a
// single failure is retried and needs no operator. The count begins again after a pause longer than
// forgive. That is long, because repeated failures back off.
const (
	strikes = 5
	forgive = 20 * time.Second
)

// Probe finds out whether failures are due to an outage, and when the outage is over. The failing
// parts cannot: each sees one connection, and an idle part does not notice the end.
type Probe struct {
	// Log gets the reports.
	Log *Log
	// Reporter is the Reporter of its reports.
	Reporter string
	// Check returns what is away, or nil when nothing is. It must end with its context.
	Check func(ctx context.Context) *Report
	// Timeout bounds one call of Check.
	Timeout time.Duration
	// Again is the pause between two checks while something is away or fails; Idle is the pause
	// otherwise. With Idle 0 it checks only after a failure.
	Again, Idle time.Duration

	once     sync.Once
	suspects chan struct{} // capacity 1

	mu      sync.Mutex
	suspect *Report // guarded by mu: the latest failure since the last look
}

// Suspect reports a failure that may be due to an outage. If there is no outage and failures go on,
// the report is logged.
func (p *Probe) Suspect(r Report) {
	p.Log.detail(r)
	p.mu.Lock()
	p.suspect = &r
	p.mu.Unlock()
	select {
	case p.wake() <- struct{}{}:
	default:
	}
}

func (p *Probe) wake() chan struct{} {
	p.once.Do(func() { p.suspects = make(chan struct{}, 1) })
	return p.suspects
}

// Run calls Check until ctx ends, and reports to Log.
func (p *Probe) Run(ctx context.Context) {
	down, struck, last := "", 0, time.Time{}
	if p.Idle == 0 && !p.wait(ctx, 0) {
		return
	}
	for {
		found := p.check(ctx)
		if ctx.Err() != nil {
			return
		}
		failure := p.take()
		if down != "" && (found == nil || found.What != down) {
			p.Log.Up(down, p.Reporter)
			down, failure, struck = "", nil, 0
		}
		switch {
		case found != nil:
			down, struck = found.What, 0
			found.Reporter = p.Reporter
			p.Log.Down(*found)
		case failure != nil:
			if now := time.Now(); now.Sub(last) < forgive {
				struck, last = struck+1, now
			} else {
				struck, last = 1, now
			}
			if struck >= strikes {
				p.Log.fault(*failure)
			}
		}
		if found == nil && failure == nil {
			if !p.wait(ctx, p.Idle) {
				return
			}
			continue
		}
		select {
		case <-time.After(p.Again):
		case <-ctx.Done():
			return
		}
	}
}

// wait waits for a failure or for pause, unless that is 0; false when ctx has ended.
func (p *Probe) wait(ctx context.Context, pause time.Duration) bool {
	var timeout <-chan time.Time
	if pause > 0 {
		timeout = time.After(pause)
	}
	select {
	case <-p.wake():
	case <-timeout:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (p *Probe) check(ctx context.Context) *Report {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	return p.Check(ctx)
}

// take returns the latest failure since the last call; nil when there was none.
func (p *Probe) take() *Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.suspect
	p.suspect = nil
	return r
}
