package pipeline

import (
	"context"
	"sync/atomic"
	"time"
)

// heartbeatMargin is how long before other instances may count this one as dead it stops sending.
const heartbeatMargin = time.Second

// heartbeat tells whether this process's last heart-beat is recent enough to send. Once the other
// instances may take it for dead they give its slots to others, so what it still sent would be more
// than a limit allows.
type heartbeat struct {
	deadAfter time.Duration
	began     time.Time
	last      atomic.Int64 // the last heart-beat that was written down, in nanoseconds since began
	void      atomic.Int64 // what was claimed before may have lost its slots, likewise
}

// newHeartbeat begins with the instance's registration, which is a heart-beat.
func newHeartbeat(deadAfter time.Duration) *heartbeat {
	return &heartbeat{deadAfter: deadAfter, began: time.Now()}
}

// beat notes a heart-beat that has been written down. at is this process's clock before it was
// sent: the database may have written it right then. After a gap what was claimed before does not
// leave any more, though this process is alive again.
func (p *heartbeat) beat(at time.Time) {
	if !p.alive(at) {
		p.void.Store(int64(at.Sub(p.began)))
	}
	p.last.Store(int64(at.Sub(p.began)))
}

// holds reports whether what was claimed at a time certainly still has its slots.
func (p *heartbeat) holds(claimed, now time.Time) bool {
	return p.alive(now) && int64(claimed.Sub(p.began)) >= p.void.Load()
}

// alive reports whether nobody can take this process for dead yet. It reads the monotonic clock,
// which goes on while a process is stopped by a signal.
func (p *heartbeat) alive(now time.Time) bool {
	return now.Sub(p.began)-time.Duration(p.last.Load()) < p.deadAfter-heartbeatMargin
}

// keepBeating begins a heart-beat at each interval, or as soon as the one before is over: with a
// database that is a second away a pause after each would make them too rare.
func (d *Dispatcher) keepBeating(ctx context.Context) {
	for {
		began := time.Now()
		if err := withTimeout(ctx, d.Beat); err != nil && ctx.Err() == nil {
			d.trouble("beat", err)
		}
		if !sleep(ctx, beatInterval-time.Since(began)) {
			return
		}
	}
}

// Beat tells the other instances that this one lives, and reads the database's clock, by which
// deadlines and release times are checked: this machine's own may be wrong or jump. It is called
// once before the first claim, and then by Run.
func (d *Dispatcher) Beat(ctx context.Context) error {
	beat, err := d.cfg.Ledger.Instances.Beat(ctx, d.open.oldest())
	if err != nil {
		return err
	}
	d.clock.read(beat.At, beat.Sent, time.Now())
	d.heartbeat.beat(beat.Sent)
	return nil
}
