package outage

import (
	"context"
	"sync"
	"time"
)

// strikes is how many looks must have found everything in order, while work failed all the same, until
// that is told: a single failure is tried again and needs nobody. They count as long as less than
// forgive lies between two of them: whoever fails again and again backs off.
const (
	strikes = 5
	forgive = 20 * time.Second
)

// Probe finds out whether what fails is due to an outage, and when that is over: those who meet
// failures see one connection each, and do not notice the end while they have nothing to do.
type Probe struct {
	// Log gets what it finds.
	Log *Log
	// Reporter is the name under which it reports.
	Reporter string
	// Look returns what is away, or nil when all is well. It must end with its context.
	Look func(ctx context.Context) *Report
	// Timeout bounds a look.
	Timeout time.Duration
	// Again is the pause between two looks while something is away or fails; Idle that while all
	// is well, 0 for none: then it looks only when it is told of a failure.
	Again, Idle time.Duration

	once     sync.Once
	suspects chan struct{} // capacity 1

	mu      sync.Mutex
	suspect *Report // guarded by mu: the latest failure since the last look
}

// Suspect tells of a failure that may be due to an outage. The report is what is to be told when it
// is not and does not end by itself.
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

// Run looks until ctx ends.
func (p *Probe) Run(ctx context.Context) {
	down, struck, last := "", 0, time.Time{}
	if p.Idle == 0 && !p.wait(ctx, 0) {
		return
	}
	for {
		found := p.look(ctx)
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
		busy := found != nil || failure != nil
		if busy && !rest(ctx, p.Again) || !busy && !p.wait(ctx, p.Idle) {
			return
		}
	}
}

// wait returns when a failure is told, or after a pause that is not 0; false when ctx has ended.
func (p *Probe) wait(ctx context.Context, pause time.Duration) bool {
	var timeout <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-p.wake():
	case <-timeout:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (p *Probe) look(ctx context.Context) *Report {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	return p.Look(ctx)
}

// take returns the latest failure since it was last called.
func (p *Probe) take() *Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.suspect
	p.suspect = nil
	return r
}
