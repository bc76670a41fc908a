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
	wall      atomic.Int64 // the same by this machine's wall clock, in nanoseconds since 1970
	stored    time.Time    // the same by the database's clock; used by beat only
	void      atomic.Int64 // attempts claimed before this may have lost their slots; in the same unit
	// receipts is since when receipts have been able to come in; nil before the first heartbeat.
	receipts atomic.Pointer[time.Time]
}

// newHeartbeat starts with the registration of the instance, which counts as a heartbeat.
func newHeartbeat(deadAfter time.Duration) *heartbeat {
	now := time.Now()
	h := &heartbeat{deadAfter: deadAfter, began: now}
	h.wall.Store(now.UnixNano())
	return h
}

// beat records that a heartbeat was stored. Its Sent is before the database can have stored it.
//
// If the heartbeat before it was too old, by a clock of this machine or by that of the database,
// others may have released the slots of this process. So attempts that were claimed before Sent are
// not sent any more. Unbroken is used only then and for the first heartbeat, because each small
// delay of a heartbeat makes it later.
func (h *heartbeat) beat(b *ledger.Heartbeat) {
	inTime := h.alive(b.Sent) && (h.stored.IsZero() || h.recent(b.At.Sub(h.stored)))
	if !inTime {
		h.void.Store(int64(b.Sent.Sub(h.began)))
	}
	if !inTime || h.receipts.Load() == nil {
		h.receipts.Store(&b.Unbroken)
	}
	h.stored = b.At
	h.wall.Store(b.Sent.UnixNano())
	h.last.Store(int64(b.Sent.Sub(h.began)))
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

// alive reports whether no instance can count this process as dead yet. The monotonic clock does
// not depend on settings of the time, but stands still while the machine is suspended. The wall
// clock goes on then, so the heartbeat must be recent by both.
func (h *heartbeat) alive(now time.Time) bool {
	return h.recent(now.Sub(h.began)-time.Duration(h.last.Load())) &&
		h.recent(time.Duration(now.UnixNano()-h.wall.Load()))
}

// recent reports whether a heartbeat of that age keeps the process alive.
func (h *heartbeat) recent(age time.Duration) bool { return age < h.deadAfter-heartbeatMargin }

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
	d.heartbeat.beat(&beat)
	return nil
}
