package pipeline

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// load counts what this process has under way on one channel, over all connections that the channel
// has had. Claims add to it when they decide, workers take away from it when they have an answer.
type load struct {
	held     atomic.Int64 // attempts claimed and not answered
	answered atomic.Int64 // since the start
	usual    atomic.Int64 // the usual answer time in nanoseconds, see observe
	waiting  atomic.Int64 // messages that wait for room here, as far as this process has made them wait
	queue    atomic.Int64 // messages of all processes that wait for the channel, as last counted
}

// release counts an attempt as answered.
func (l *load) release() {
	if l != nil {
		l.held.Add(-1)
		l.answered.Add(1)
	}
}

// observe takes an answer, or the end of the wait for one, into the usual answer time: a mean in
// which each new one counts a 32nd, and no longer than latestOverdue.
func (l *load) observe(r *provider.Result, took time.Duration) {
	if r.Outcome == provider.Refused {
		return // it may not have been sent at all
	}
	took = min(took, latestOverdue)
	for {
		before := l.usual.Load()
		if l.usual.CompareAndSwap(before, before+(int64(took)-before)/answersRecalled) {
			return
		}
	}
}

// overdueAfter is the age from which on a submission counts as overdue.
func (l *load) overdueAfter() time.Duration {
	return min(max(overdueTimes*time.Duration(l.usual.Load()), soonestOverdue), latestOverdue)
}

// usualTime is the usual answer time. It grows from zero, so it is too short to rely on until some
// answers have come.
func (l *load) usualTime() time.Duration {
	usual := time.Duration(l.usual.Load())
	if l.answered.Load() < answersRecalled {
		return max(usual, firstGuess)
	}
	return usual
}

// wakes takes up to n of those who wait for room.
func (l *load) wakes(n int64) int {
	for {
		waiting := l.waiting.Load()
		some := min(n, waiting)
		if some <= 0 {
			return 0
		}
		if l.waiting.CompareAndSwap(waiting, waiting-some) {
			return int(some)
		}
	}
}

// underWay is what the worker's channel has under way.
func (w *worker) underWay(now time.Time) underWay {
	u := underWay{
		held: int(w.load.held.Load()), senders: int(w.concurrency), usual: w.load.usualTime(),
	}
	if u.held == 0 {
		return u
	}
	before := int64(now.Sub(w.began) - w.load.overdueAfter())
	for i := range w.outSince {
		if at := w.outSince[i].Load(); at > 0 && at <= before {
			u.overdue++
		}
	}
	return u
}

// rooms is what each channel of a routing may take now, and how much of the total is stuck.
func (d *Dispatcher) rooms(routing *decide.Routing) (each []decide.Room, held int) {
	now, total := time.Now(), d.slots.size()
	channels := make([]underWay, len(routing.Channels))
	d.mu.RLock()
	defer d.mu.RUnlock()
	for i := range routing.Channels {
		c := &routing.Channels[i]
		if w := d.workers[c.Name]; w != nil {
			channels[i] = w.underWay(now)
		}
		channels[i].closed = c.State == decide.Disabled
	}
	each = rooms(channels, total)
	for i := range each {
		if l := d.loads[routing.Channels[i].Name]; l != nil {
			each[i].Queue = l.queue.Load()
		}
	}
	return each, stuck(channels, each)
}

// countQueues learns how many messages wait for the channels that have had no room, see roomAgain.
func (d *Dispatcher) countQueues(ctx context.Context) error {
	loads := d.fullLoads()
	if len(loads) == 0 {
		return nil
	}
	waiting, err := d.cfg.Ledger.WaitingFor(ctx, slices.Collect(maps.Keys(loads)))
	if err != nil {
		return err
	}
	for name, l := range loads {
		l.queue.Store(waiting[name])
	}
	return nil
}

// fullLoads are those for whose channels messages wait or have waited.
func (d *Dispatcher) fullLoads() map[string]*load {
	d.mu.RLock()
	defer d.mu.RUnlock()
	full := map[string]*load{}
	for name, l := range d.loads {
		if l.waiting.Load() > 0 || l.queue.Load() > 0 {
			full[name] = l
		}
	}
	return full
}

// Waits of a claim before it takes less than it wants.
const (
	// gatherTime is how long a claim waits for more slots once one is free. Without it a claim
	// would take the few that each settlement frees, and a transaction would carry few messages.
	gatherTime = 100 * time.Millisecond
	// roomTime is how long a claim waits for room on channels that answer nothing meanwhile,
	// longestRoomTime on those that do, and roomLook how often it looks.
	roomTime        = 20 * time.Millisecond
	longestRoomTime = 500 * time.Millisecond
	roomLook        = 2 * time.Millisecond
)

// enough is how many of so many slots make a claim that need not wait for more.
func enough(slots int) int { return max(slots*mostOfRest/restParts, 1) }

// awaitRoom drops the jobs behind the first that has no room, see fits: they follow in the next
// claim. It waits a moment for room before it takes less than most of them, and longer for the
// first job as long as its channels answer. When they answer nothing, it takes all: those without
// room wait in the database, and the others do not wait for channels that may have failed. held is
// how much of the slots is stuck.
func (d *Dispatcher) awaitRoom(ctx context.Context, r *claim) (held int, err error) {
	began := time.Now()
	looked, watched, before := began, []int(nil), int64(0)
	for {
		each, held := d.rooms(r.plan.Routing)
		n, blocked := r.plan.Fits(each, r.unready)
		switch {
		case blocked == nil:
			return held, nil
		case n >= enough(len(r.plan.Tasks)):
			r.plan.Keep(n)
			return held, nil
		case watched == nil:
			watched, before = blocked, d.answeredBy(r.plan.Routing, blocked)
		case time.Since(looked) >= roomTime:
			now := d.answeredBy(r.plan.Routing, watched)
			if now == before || time.Since(began) >= longestRoomTime {
				return held, nil
			}
			if n > 0 {
				r.plan.Keep(n)
				return held, nil
			}
			looked, watched, before = time.Now(), blocked, d.answeredBy(r.plan.Routing, blocked)
		}
		if !sleep(ctx, roomLook) {
			return 0, ctx.Err()
		}
	}
}

// answeredBy counts the answers of channels.
func (d *Dispatcher) answeredBy(routing *decide.Routing, channels []int) (answers int64) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, c := range channels {
		if l := d.loads[routing.Channels[c].Name]; l != nil {
			answers += l.answered.Load()
		}
	}
	return answers
}

// reserve counts the claim's attempts as under way on their channels.
func (d *Dispatcher) reserve(r *claim) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, f := range r.attempts {
		if f.load = d.loads[f.Channel]; f.load != nil {
			f.load.held.Add(1)
		}
	}
}

// unreserve takes that back: the claim was not committed.
func (r *claim) unreserve() {
	for _, f := range r.attempts {
		if f.load != nil {
			f.load.held.Add(-1)
			f.load = nil
		}
	}
}

// noteFull remembers that a message waits for room on a channel, so that the next answers wake it.
func (d *Dispatcher) noteFull(decision *ledger.Decision) {
	if decision.Reason != decide.Bulkhead && decision.Reason != decide.InFlight {
		return
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if l := d.loads[decision.WaitsFor]; l != nil && l.waiting.Load() < int64(d.slots.size()) {
		l.waiting.Add(1) // a message that looks in vain again and again counts each time
	}
}

// loadsNow is how many attempts are under way on each channel.
func (d *Dispatcher) loadsNow() map[string]int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	now := make(map[string]int64, len(d.loads))
	for name, l := range d.loads {
		now[name] = l.held.Load()
	}
	return now
}
