package pipeline

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// load counts what this process has in flight on one channel, over all connections that the channel
// has had. Claims add to it when they decide, workers subtract when they have an answer.
type load struct {
	inFlight atomic.Int64 // attempts claimed and not answered
	answered atomic.Int64 // times that observe has added
	usual    atomic.Int64 // the usual answer time in nanoseconds, see observe
	waiting  atomic.Int64 // messages of this process that wait for room here
	queue    atomic.Int64 // messages of all processes that wait for the channel, as last counted

	times answerTimes
}

// release counts an attempt as no longer in flight.
func (l *load) release() {
	if l != nil {
		l.inFlight.Add(-1)
	}
}

// observe adds an answer time, or the time waited without an answer, to the usual answer time. The
// usual answer time is a moving average in which each new time has the weight 1/32 and counts as at
// most latestOverdue.
func (l *load) observe(took time.Duration) {
	took = min(took, latestOverdue)
	for {
		before := l.usual.Load()
		if l.usual.CompareAndSwap(before, before+(int64(took)-before)/answersRecalled) {
			l.answered.Add(1)
			return
		}
	}
}

// overdueAfter is the age from which a submission counts as overdue. Before there is a usual answer
// time it is latestOverdue.
func (l *load) overdueAfter() time.Duration {
	if l.untried() {
		return latestOverdue
	}
	return min(max(overdueTimes*time.Duration(l.usual.Load()), soonestOverdue), latestOverdue)
}

// untried reports whether too few answers have come to know how long the channel takes.
func (l *load) untried() bool { return l.answered.Load() < answersRecalled }

// usualTime is the usual answer time. The average starts at zero, so it is at least firstGuess
// until enough answers have come.
func (l *load) usualTime() time.Duration {
	usual := time.Duration(l.usual.Load())
	if l.untried() {
		return max(usual, firstGuess)
	}
	return usual
}

// takeWaiting removes up to n from the count of messages that wait for room, and returns how many.
func (l *load) takeWaiting(n int64) int {
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

// inFlight is what the worker's channel has in flight.
func (w *worker) inFlight(now time.Time) inFlight {
	since := now.Sub(w.began)
	f := inFlight{
		held: int(w.load.inFlight.Load()), senders: int(w.concurrency), usual: w.load.usualTime(),
	}
	lately := max(f.usual, leastLately)
	f.answered = w.lately.count(since, lately)
	f.unknown = f.answered == 0
	f.silent = int(w.lately.missed.Load())
	before, last := int64(since-w.load.overdueAfter()), w.lately.last.Load()
	f.quiet = since - time.Duration(last)
	for i := range w.outSince {
		if f.held == 0 {
			break
		}
		at := w.outSince[i].Load()
		f.unknown = f.unknown && (at == 0 || at > int64(since-lately))
		if at > 0 && at <= before {
			if at > last {
				f.silent++
			} else {
				f.overdue++
			}
		}
	}
	f.unknown = f.unknown || w.load.untried()
	return f
}

// answersLately counts the latest answers of a connection, without those to overdue submissions.
// Times are since the worker began.
type answersLately struct {
	last   atomic.Int64 // when the last one came
	missed atomic.Int64 // late or missing answers since last
	// spans counts answers by the span in which they came. The lower half of each number is the count,
	// the upper half the number of the span.
	spans [64]atomic.Int64
}

// answerSpan is the resolution: 64 spans are longer than latestOverdue.
const answerSpan = 50 * time.Millisecond

// add counts an answer.
func (l *answersLately) add(since time.Duration) {
	raise(&l.last, int64(since))
	l.missed.Store(0)
	span := int64(since / answerSpan)
	at := &l.spans[span%int64(len(l.spans))]
	for {
		before := at.Load()
		next := span<<32 | 1
		if before>>32 == span {
			next = before + 1
		}
		if at.CompareAndSwap(before, next) {
			return
		}
	}
}

// count is how many answers came within a time before since. It may include up to one span more.
func (l *answersLately) count(since, within time.Duration) (n int) {
	newest, oldest := int64(since/answerSpan), int64(max(since-within, 0)/answerSpan)
	for i := range l.spans {
		if v := l.spans[i].Load(); v>>32 >= oldest && v>>32 <= newest {
			n += int(v & (1<<32 - 1))
		}
	}
	return n
}

// rooms is the room of each channel of a routing now, and how much of the total is stuck.
func (d *Dispatcher) rooms(routing *decide.Routing) (each []decide.Room, held int) {
	now, total := time.Now(), d.cfg.MaxUnsettled
	channels, portions := make([]inFlight, len(routing.Channels)), routing.Portions()
	d.mu.RLock()
	defer d.mu.RUnlock()
	for i := range routing.Channels {
		c := &routing.Channels[i]
		if w := d.workers[c.Name]; w != nil {
			channels[i] = w.inFlight(now)
		}
		channels[i].closed, channels[i].portion = c.State == decide.Disabled, portions[i]
	}
	each = rooms(channels, total)
	for i := range each {
		if l := d.loads[routing.Channels[i].Name]; l != nil {
			each[i].Waiting = l.queue.Load()
		}
	}
	return each, stuck(channels, each)
}

// countQueues counts the messages that wait for the channels that had no room, see roomAgain.
func (d *Dispatcher) countQueues(ctx context.Context) error {
	loads := d.fullLoads()
	if len(loads) == 0 {
		return nil
	}
	waiting, err := d.cfg.Ledger.Claims.WaitingFor(ctx, slices.Collect(maps.Keys(loads)))
	if err != nil {
		return err
	}
	for name, l := range loads {
		l.queue.Store(waiting[name])
	}
	return nil
}

// fullLoads are the loads of channels for which messages wait or have waited.
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

// loadsNow is how many attempts are in flight on each channel.
func (d *Dispatcher) loadsNow() map[string]int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	now := make(map[string]int64, len(d.loads))
	for name, l := range d.loads {
		now[name] = l.inFlight.Load()
	}
	return now
}
