package pipeline

import (
	"context"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// How long a claim waits before it takes less than it asked for.
const (
	// gatherTime is how long a claim waits for more slots once one is free. Without it a claim would
	// take the few slots that each settlement frees, and transactions would carry few messages.
	gatherTime = 100 * time.Millisecond
	// roomTime is how long a claim waits for room for most of its jobs, longestRoomTime for room for
	// the first of them. roomLook is the interval between checks.
	roomTime        = 20 * time.Millisecond
	longestRoomTime = 500 * time.Millisecond
	roomLook        = 2 * time.Millisecond
)

// enough is how many of a claim's jobs must have room for the claim to take them at once.
func enough(slots int) int { return max(slots*3/4, 1) }

// awaitRoom waits until the channels have room for the claim's jobs, see Fits. If some job has no
// room, the claim keeps only these jobs, and the next claim takes the rest:
//
//	at once                 those before it, if they are most of the jobs and their slots are free
//	after roomTime          those before it, if there are any
//	after longestRoomTime   all: those without room will wait in the database
//
// It returns how many slots are stuck.
func (d *Dispatcher) awaitRoom(ctx context.Context, c *claim) (stuck int, err error) {
	for began := time.Now(); ; {
		each, stuck := d.rooms(c.plan.Routing)
		n, all := c.plan.Fits(each, c.unready)
		waited := time.Since(began)
		switch {
		case all || waited >= longestRoomTime:
			return stuck, nil
		case n > 0 && waited >= roomTime,
			n >= enough(len(c.plan.Tasks)) && d.slots.has(min(n, d.slots.size()-stuck)):
			c.plan.Keep(n)
			return stuck, nil
		}
		if !ledger.Pause(ctx, roomLook) {
			return 0, ctx.Err()
		}
	}
}

// reserve counts the claim's attempts as in flight on their channels.
func (d *Dispatcher) reserve(c *claim) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, a := range c.attempts {
		if a.load = d.loads[a.Channel]; a.load != nil {
			a.load.inFlight.Add(1)
		}
	}
}

// unreserve undoes reserve, because the claim was not committed.
func (c *claim) unreserve() {
	for _, a := range c.attempts {
		if a.load != nil {
			a.load.inFlight.Add(-1)
			a.load = nil
		}
	}
}

// noteFull records that a message waits for room on a channel, so that the next answer wakes it.
func (d *Dispatcher) noteFull(decision *ledger.Decision) {
	if decision.Reason != decide.Bulkhead && decision.Reason != decide.InFlight {
		return
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if l := d.loads[decision.WaitsFor]; l != nil && l.waiting.Load() < int64(d.slots.size()) {
		l.waiting.Add(1) // a message that finds no room several times counts each time
	}
}
