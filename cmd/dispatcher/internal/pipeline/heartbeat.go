package pipeline

import (
	"context"
	"sync/atomic"
	"time"

	"dispatcher/ledger"
)

// heartbeatMargin is the time from when this instance stops sending until others may count it as
// dead.
const heartbeatMargin = time.Second

// heartbeat says whether this process's last heartbeat is recent enough to send. Once other
// instances may count it as dead, they give its slots to others, so anything it still sent would
// exceed a limit.
type heartbeat struct {
	deadAfter time.Duration
	began     time.Time
	last      atomic.Int64 // the last stored heartbeat, in nanoseconds since began
	void      atomic.Int64 // attempts claimed before this may have lost their slots; in the same unit
	// receipts is since when receipts have been able to come in; nil before the first heartbeat.
	receipts atomic.Pointer[time.Time]
}

// newHeartbeat starts with the registration of the instance, which counts as a heartbeat.
func newHeartbeat(deadAfter time.Duration) *heartbeat {
	return &heartbeat{deadAfter: deadAfter, began: time.Now()}
}

// beat records that a heartbeat was stored. at is this process's clock before the heartbeat was
// sent: the database cannot have stored it earlier. unbroken is Heartbeat.Unbroken.
//
// If the heartbeat before it was too old, others may have released the slots of this process, so
// attempts that were claimed before at are not sent any more. unbroken is used only then and for
// the first heartbeat, because each small delay of a heartbeat makes unbroken later.
func (h *heartbeat) beat(at, unbroken time.Time) {
	alive := h.alive(at)
	if !alive {
		h.void.Store(int64(at.Sub(h.began)))
	}
	if !alive || h.receipts.Load() == nil {
		h.receipts.Store(&unbroken)
	}
	h.last.Store(int64(at.Sub(h.began)))
}

// holds reports whether an attempt claimed at a time certainly still has its slots.
func (h *heartbeat) holds(claimed, now time.Time) bool {
	return h.alive(now) && int64(claimed.Sub(h.began)) >= h.void.Load()
}

// receiptsSince is since when receipts have been able to come in, to this process or another; zero
// before the first heartbeat.
func (h *heartbeat) receiptsSince() time.Time {
	if at := h.receipts.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// alive reports whether no instance can count this process as dead yet. It uses the monotonic
// clock, which goes on while a signal has stopped the process.
func (h *heartbeat) alive(now time.Time) bool {
	return now.Sub(h.began)-time.Duration(h.last.Load()) < h.deadAfter-heartbeatMargin
}

// keepBeating starts a heartbeat at each interval, or as soon as the one before is over. A pause
// after each would make them too rare when the round trip takes a second.
func (d *Dispatcher) keepBeating(ctx context.Context) {
	for {
		began := time.Now()
		if err := withTimeout(ctx, d.Beat); err != nil && ctx.Err() == nil {
			d.trouble("beat", err)
		}
		if !ledger.Pause(ctx, beatInterval-time.Since(began)) {
			return
		}
	}
}

// Beat tells the other instances that this one is alive, and reads the database's clock. Deadlines
// and release times use that clock, because this machine's own may be wrong or jump. It is called
// once before the first claim, and then by Run.
func (d *Dispatcher) Beat(ctx context.Context) error {
	beat, err := d.cfg.Ledger.Instances.Beat(ctx, d.open.oldest())
	if err != nil {
		return err
	}
	d.clock.read(beat.At, beat.Sent, time.Now())
	d.heartbeat.beat(beat.Sent, beat.Unbroken)
	return nil
}
