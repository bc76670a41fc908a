package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// Intervals of the background work.
const (
	// dueInterval is how often a process looks for due rows that it does not know of, for example
	// those that another process has woken.
	dueInterval     = 500 * time.Millisecond
	beatInterval    = time.Second
	recoverInterval = 2 * time.Second
	// dueGap is the shortest time between two looks at due rows without a wake. Rows that come due
	// within it are claimed together, however many different times they have.
	dueGap = 50 * time.Millisecond
	// recoveryMargin is added to the send deadline before an attempt of a lost instance is closed,
	// because the clocks of two processes and of the database differ.
	recoveryMargin = 2 * time.Second
)

// Run claims due rows, keeps the heartbeat, frees slots that nobody holds any more and recovers
// the attempts of lost instances, until ctx ends.
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
	loops.Go(func() { d.every(ctx, recoverInterval, "recover", d.recoverLost) })
	loops.Go(func() { d.every(ctx, time.Second, "waiting", d.countWaiting) })
	loops.Go(func() { d.every(ctx, time.Second, "queues", d.countQueues) })
	loops.Go(func() { d.every(ctx, releaseInterval, "release", d.release) })
	loops.Go(func() { d.every(ctx, d.cfg.StateInterval, "gather", d.gather) })
	loops.Go(func() { d.every(ctx, ambiguityInterval, "ambiguities", d.resolveAmbiguities) })
	loops.Go(func() { d.every(ctx, windowInterval, "windows", d.dropWindows) })
	loops.Go(func() { d.every(ctx, presentInterval, "present", d.present) })
	loops.Wait()
}

// every calls work at once and then at each interval, until ctx ends.
func (d *Dispatcher) every(
	ctx context.Context, interval time.Duration, where string, work func(context.Context) error,
) {
	for {
		if err := withTimeout(ctx, work); err != nil && ctx.Err() == nil {
			d.trouble(where, err)
		}
		if !ledger.Pause(ctx, interval) {
			return
		}
	}
}

// operationTimeout bounds one operation of the ledger other than a claim. Without it, a database
// host that vanished would delay the heartbeat until the TCP timeout.
const operationTimeout = 15 * time.Second

func withTimeout(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	return work(ctx)
}

// runDue claims due rows, batch after batch while there are more. Otherwise it waits until the
// interval is over, a row that this process has put off comes due, or wake is called.
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
// It returns false when ctx has ended.
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

// nextLook is when due rows are looked at again without a wake. The slack is added because this
// process's estimate may be a little ahead of the database's clock, for which the row would not be
// due yet.
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

// takeDue claims one batch of due rows and reports whether there may be more. Functions are asked
// in the background about the rows that need it; asking counts these calls.
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
	var c *claim
	if err == nil {
		c, err = d.prepare(ctx, nil, due)
	}
	if err == nil {
		err = d.claim(ctx, c)
	}
	switch {
	case err == nil:
		d.start(c)
		if len(c.decided.Unasked) > 0 {
			d.askAboutDue(ctx, c, asking)
		}
		return (due == n || c.due < due || c.decided.Unlocked) && ctx.Err() == nil
	case ctx.Err() != nil:
		return false
	case errors.Is(err, decide.ErrStaleRouting):
		if err = d.cfg.Reload(ctx); err == nil {
			return true
		}
	}
	d.trouble("due", err)
	ledger.Pause(ctx, longestPause)
	return false
}

// wakeWaiting wakes the messages that wait for something in the wake set.
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

// countWaiting counts what waits on each lane, and finds the lanes that are full.
func (d *Dispatcher) countWaiting(ctx context.Context) error {
	waiting, err := d.cfg.Ledger.Claims.Waiting(ctx)
	if err != nil {
		return fmt.Errorf("count waiting messages: %w", err)
	}
	full, total, firstLane := map[string]bool{}, int64(0), false
	routing := d.routing.Load()
	for name, lane := range routing.Lanes {
		n := waiting[name]
		total += n
		firstLane = firstLane || lane.Order == 0 && n > 0
		byOperator := routing.Paused.Lane(name)
		full[name] = n >= lane.MaxWaiting || byOperator
		d.cfg.Metrics.pausedLane(name, byOperator, n >= lane.MaxWaiting)
		d.cfg.Metrics.waiting.WithLabelValues(name).Set(float64(n))
	}
	for name, l := range d.loadsNow() {
		d.cfg.Metrics.unanswered.WithLabelValues(name).Set(float64(l))
	}
	d.showReady(routing)
	d.backlog.Store(total > 0)
	d.firstLaneWaits.Store(firstLane)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
	return nil
}

// showReady shows on which channels this process can send. Channels that are not enabled are left
// out.
func (d *Dispatcher) showReady(routing *decide.Routing) {
	reasons, gauge := d.unready(routing), d.cfg.Metrics.ready
	shown := make(map[string]bool, len(reasons))
	for i, why := range reasons {
		c := &routing.Channels[i]
		if shown[c.Name] = c.State == decide.Enabled; !shown[c.Name] {
			continue
		}
		switch why {
		case "", decide.Busy, decide.Throttled, provider.Probing:
			gauge.WithLabelValues(c.Name).Set(1)
		default:
			gauge.WithLabelValues(c.Name).Set(0)
		}
	}
	for name := range d.shown {
		if !shown[name] {
			gauge.DeleteLabelValues(name)
		}
	}
	d.shown = shown
}
