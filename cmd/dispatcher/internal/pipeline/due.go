package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// Intervals of the background work.
const (
	// dueInterval is how often a process looks at due rows of which it does not know: those that
	// another has woken.
	dueInterval     = 500 * time.Millisecond
	beatInterval    = time.Second
	recoverInterval = 2 * time.Second
	// dueGap is the shortest time between two looks at due rows that nobody asked for. Those that
	// come due within it are claimed together, however many different times they were put off to.
	dueGap = 50 * time.Millisecond
	// recoveryMargin is added to the send deadline before an attempt of a lost instance
	// is closed: clocks of two processes and the database are not read at the same instant.
	recoveryMargin = 2 * time.Second
)

// Run picks up due rows, keeps the heart-beat, gives back slots that nobody holds any more and
// recovers what lost instances left behind, until ctx ends.
func (d *Dispatcher) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() {
		if d.cfg.Begin != nil {
			select {
			case <-d.cfg.Begin:
			case <-ctx.Done():
				return
			}
		}
		d.runDue(ctx)
	})
	loops.Go(func() { d.keepBeating(ctx) })
	loops.Go(func() { d.every(ctx, recoverInterval, "recover", d.recover) })
	loops.Go(func() { d.every(ctx, time.Second, "waiting", d.countWaiting) })
	loops.Go(func() { d.every(ctx, time.Second, "queues", d.countQueues) })
	loops.Go(func() { d.every(ctx, releaseInterval, "release", d.release) })
	loops.Go(func() { d.every(ctx, d.cfg.StateInterval, "gather", d.gather) })
	loops.Go(func() { d.every(ctx, ambiguityInterval, "ambiguities", d.resolveAmbiguities) })
	loops.Go(func() { d.every(ctx, windowInterval, "windows", d.dropWindows) })
	loops.Go(func() { d.every(ctx, presentInterval, "present", d.present) })
	loops.Wait()
}

// every calls work at once and then at each interval.
func (d *Dispatcher) every(
	ctx context.Context, interval time.Duration, where string, work func(context.Context) error,
) {
	for {
		if err := withTimeout(ctx, work); err != nil && ctx.Err() == nil {
			d.trouble(where, err)
		}
		if !sleep(ctx, interval) {
			return
		}
	}
}

// operationTimeout bounds one operation of the ledger other than a claim: a database host that
// vanished must not hold up the heart-beat until the TCP timeout.
const operationTimeout = 15 * time.Second

func withTimeout(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	return work(ctx)
}

// runDue claims due rows, a batch after the other while there are more, else at each interval, when
// a row comes due that this process has put off, or when an outcome or an answer made some due.
func (d *Dispatcher) runDue(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	timer := time.NewTimer(dueInterval)
	defer timer.Stop()
	for {
		looked := time.Now()
		if !d.takeDue(ctx, &asking) && !d.awaitDue(ctx, timer, looked) {
			return
		}
	}
}

// awaitDue waits until it is time for the next look at due rows; looked is when the last one began.
// It is false when ctx ended first.
func (d *Dispatcher) awaitDue(ctx context.Context, timer *time.Timer, looked time.Time) bool {
	for {
		timer.Reset(time.Until(d.nextLook(looked)))
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-d.nudge:
			return true
		case <-d.due.moved:
		}
	}
}

// nextLook is when due rows are looked at again if nobody asks for it before. The clock may be a
// little ahead of the database's, for which a row would not have come due yet: hence the slack.
func (d *Dispatcher) nextLook(looked time.Time) time.Time {
	at, earliest := looked.Add(dueInterval), looked.Add(dueGap)
	if soonest, ok := d.due.soonest(d.now().Add(-time.Since(looked) - clockSlack)); ok {
		if here := d.clock.here(soonest).Add(clockSlack); here.Before(at) {
			at = here
		}
	}
	if at.Before(earliest) {
		return earliest
	}
	return at
}

// takeDue claims one batch of due rows and reports whether there may be more. Functions
// are asked about the rows that need it in the background; asking counts them.
func (d *Dispatcher) takeDue(ctx context.Context, asking *sync.WaitGroup) bool {
	d.wakeWaiting(ctx)
	n := max(1, d.slots.size()/2)
	var due int
	err := withTimeout(ctx, func(ctx context.Context) (err error) {
		due, err = d.cfg.Ledger.Claims.Due(ctx, n, d.answers.open()...)
		return err
	})
	if err == nil && due == 0 {
		return false
	}
	var r *claim
	if err == nil {
		r, err = d.claim(ctx, nil, due)
	}
	switch {
	case err == nil:
		if len(r.decided.Unasked) > 0 {
			d.askAboutDue(ctx, r, asking)
		}
		return (due == n || r.due < due || r.decided.Unlocked) && ctx.Err() == nil
	case ctx.Err() != nil:
		return false
	case errors.Is(err, decide.ErrStaleRouting):
		if err = d.cfg.Reload(ctx); err == nil {
			return true
		}
	}
	d.trouble("due", err)
	sleep(ctx, longestPause)
	return false
}

// wakeWaiting wakes the messages that wait for something that has come free.
func (d *Dispatcher) wakeWaiting(ctx context.Context) {
	on, most := d.wakeSet.take()
	if len(on) == 0 {
		return
	}
	n := min(most, d.slots.size())
	err := withTimeout(ctx, func(ctx context.Context) error {
		return d.cfg.Ledger.Claims.WakeFor(ctx, on, n)
	})
	if err != nil && ctx.Err() == nil {
		d.trouble("wake", err)
	}
}

// countWaiting learns how much waits on each lane, and which lanes are full.
func (d *Dispatcher) countWaiting(ctx context.Context) error {
	waiting, err := d.cfg.Ledger.Claims.Waiting(ctx)
	if err != nil {
		return fmt.Errorf("count waiting messages: %w", err)
	}
	full, total, coded := map[string]bool{}, int64(0), false
	routing := d.routing.Load()
	paused := &routing.Paused
	for name, lane := range routing.Lanes {
		n := waiting[name]
		total += n
		coded = coded || lane.Order == 0 && n > 0
		byOperator := paused.All || slices.Contains(paused.Lanes, name)
		full[name] = n >= lane.MaxWaiting || byOperator
		d.cfg.Metrics.pausedLane(name, byOperator, n >= lane.MaxWaiting)
		d.cfg.Metrics.waiting.WithLabelValues(name).Set(float64(n))
	}
	for name, l := range d.loadsNow() {
		d.cfg.Metrics.underWay.WithLabelValues(name).Set(float64(l))
	}
	d.backlog.Store(total > 0)
	d.coded.Store(coded)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
	return nil
}
