package pipeline

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
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
