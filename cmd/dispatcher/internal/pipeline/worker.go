package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/tracing"
	"dispatcher/provider"
)

// Intervals of a worker.
const (
	// tick is the shortest time between two looks at the release times to come. Attempts within it
	// leave together, so that a fast channel needs no timer for each submit.
	tick = time.Millisecond
	// sweepInterval is how often the feeder checks for attempts that can no longer leave while they
	// wait for a sender.
	sweepInterval = 10 * time.Millisecond
	// urgentWithin: an attempt that must leave within this time after its claim is urgent, because it
	// may become late while it waits for a sender.
	urgentWithin = 2 * time.Second
	// longestUrgentWait is how long an urgent attempt should wait for a sender, at most. That much
	// time it has for certain, see spread.
	longestUrgentWait = spareTime
)

// worker sends what has been claimed for one channel, each attempt at its release time. The feeder
// hands due attempts to the senders. There are as many senders as submits that the channel may have
// in flight.
type worker struct {
	name        string
	channel     provider.Channel
	timeout     time.Duration
	concurrency int32
	heartbeat   *heartbeat
	metrics     channelMetrics
	tracer      *tracing.Tracer // nil records nothing
	answers     func(answered)

	inbox     chan []*openAttempt // room for Config.MaxUnsettled attempts, so that put never blocks
	toSenders chan *openAttempt   // from the feeder to the senders; closed by the feeder
	schedule  sendSchedule        // owned by feed

	load     *load
	outSince []atomic.Int64 // by sender: when its submission went out, since began; 0 for none
	lately   answersLately

	sending       atomic.Int32 // senders busy
	waitingUrgent atomic.Int32 // urgent attempts that are due and wait for a sender

	// throttledUntil is when the longest pause that the provider asked for ends, in nanoseconds since
	// began, so that a change of the wall clock does not matter. throttles counts the throttled
	// answers without a Retry-After since the last Accepted; several within a second count once.
	// counted is when the last of them was counted.
	began          time.Time
	throttledUntil atomic.Int64
	throttles      atomic.Int32
	counted        atomic.Int64
	late           lateBackoff

	stop    context.Context // ended by halt: after it nothing leaves
	halt    context.CancelFunc
	running sync.WaitGroup // feeder and senders
}

func newWorker(
	c *decide.Channel, channel provider.Channel, cfg *Config, heart *heartbeat, load *load,
	answers func(answered),
) *worker {
	senders := max(1, min(c.Concurrency, cfg.MaxUnsettled))
	w := &worker{
		name: c.Name, began: time.Now(), channel: channel, timeout: cfg.SendTimeout,
		concurrency: int32(senders), //nolint:gosec // Some hundreds.
		heartbeat:   heart, metrics: cfg.Metrics.channel(c.Name), tracer: cfg.Tracer,
		answers: answers, load: load,
		inbox: make(chan []*openAttempt, cfg.MaxUnsettled), toSenders: make(chan *openAttempt),
	}
	w.stop, w.halt = context.WithCancel(context.Background())
	w.outSince = make([]atomic.Int64, w.concurrency)
	w.running.Go(w.feed)
	for sender := range w.outSince {
		w.running.Go(func() { w.run(&w.outSince[sender]) })
	}
	return w
}

// unready says why nothing can be sent on the channel now; empty when it can.
func (w *worker) unready(now time.Time) string {
	if w.paused(now) {
		return decide.Throttled
	}
	ok, why := w.channel.Ready()
	switch {
	case !ok:
		return why
	case !w.heartbeat.alive(now), w.late.active(now),
		w.sending.Load() >= w.concurrency && w.waitingUrgent.Load() >= w.urgentQueue(now):
		return decide.Busy
	case why == provider.Probing:
		return why
	}
	return ""
}

// urgentQueue is how many urgent attempts may wait for a sender: as many as there are senders, or
// if answers come, what is usually sent within longestUrgentWait.
func (w *worker) urgentQueue(now time.Time) int32 {
	lastAnswer := w.began.Add(time.Duration(w.lately.last.Load()))
	if w.load.untried() || now.Sub(lastAnswer) > quietAfter {
		return w.concurrency
	}
	rounds := longestUrgentWait / max(w.load.usualTime(), quickestAnswer)
	return w.concurrency * max(int32(rounds), 1) //nolint:gosec // At most ten.
}

// paused reports whether a pause that the provider asked for is in force.
func (w *worker) paused(now time.Time) bool {
	return now.Sub(w.began) < time.Duration(w.throttledUntil.Load())
}

// put queues attempts of one claim.
func (w *worker) put(attempts ...*openAttempt) {
	until := newSharedDeadline(attempts[0].claimed.Add(w.timeout), len(attempts))
	for _, a := range attempts {
		a.until = until
	}
	w.inbox <- attempts
}

// feed hands each attempt to a sender at its release time, the first lane before others, and
// settles as unsent those that can no longer leave. It ends when the inbox is closed and empty.
func (w *worker) feed() {
	defer close(w.toSenders)
	var alarm alarm
	defer alarm.stop()
	swept := time.Now()
	for w.open(time.Now()) {
		now := time.Now()
		w.schedule.advance(now)
		if now.Sub(swept) >= sweepInterval {
			swept = now
			w.sweep(now)
		}
		next := w.handOver()
		w.count(next)
		toSenders := w.toSenders
		if next == nil {
			toSenders = nil
		}
		select {
		case attempts := <-w.inbox: // none when it is closed
			w.schedule.add(now, attempts...)
		case toSenders <- next:
			w.schedule.pop()
		case <-alarm.at(now, w.wakeAt(now, swept)):
		}
	}
	for _, a := range w.schedule.all() {
		w.sendBack(a, decide.CodeStopping, time.Now())
	}
}

// open moves everything in the inbox to the schedule, so that new attempts of the first lane go
// first. It returns false when the inbox is closed and empty.
func (w *worker) open(now time.Time) bool {
	for {
		select {
		case attempts, open := <-w.inbox:
			if !open {
				return false
			}
			w.schedule.add(now, attempts...)
		default:
			return true
		}
	}
}

// handOver gives due attempts to the senders that wait for one, and returns the next attempt.
func (w *worker) handOver() *openAttempt {
	for {
		next := w.schedule.next()
		if next == nil {
			return nil
		}
		select {
		case w.toSenders <- next:
			w.schedule.pop()
		default:
			return next
		}
	}
}

// wakeAt is when the feeder has to check again if nothing else happens; zero for never.
func (w *worker) wakeAt(now, swept time.Time) time.Time {
	at, ahead := w.schedule.soonest()
	if earliest := now.Add(tick); ahead && at.Before(earliest) {
		at = earliest
	}
	if w.schedule.waiting() == 0 {
		return at
	}
	if sweep := swept.Add(sweepInterval); !ahead || sweep.Before(at) {
		return sweep
	}
	return at
}

// sweep sends back the due attempts that may no longer leave, though they are still waiting for a
// sender.
func (w *worker) sweep(now time.Time) {
	w.schedule.drop(func(a *openAttempt) bool {
		code := w.unsendable(a, now)
		if code != "" {
			w.sendBack(a, code, now)
		}
		return code != ""
	})
}

func (w *worker) sendBack(a *openAttempt, code string, now time.Time) {
	result := w.unsent(a, code, now)
	a.answer(w.answers, &result)
}

// count sets how many urgent attempts wait for a sender: all that are due, if the next one is
// urgent.
func (w *worker) count(next *openAttempt) {
	n := 0
	if next != nil && !next.latest.IsZero() && next.latest.Sub(next.claimed) < urgentWithin {
		n = w.schedule.waiting()
	}
	w.waitingUrgent.Store(int32(n)) //nolint:gosec // At most Config.MaxUnsettled.
}

// run sends until the feeder ends. since shows the start of the current submission to other
// goroutines.
func (w *worker) run(since *atomic.Int64) {
	for a := range w.toSenders {
		w.sending.Add(1)
		since.Store(int64(time.Since(w.began)) + 1)
		result := w.send(a)
		since.Store(0)
		w.applyThrottle(&result)
		w.sending.Add(-1)
		a.answer(w.answers, &result)
	}
}

// send checks an attempt for the last time and submits it.
func (w *worker) send(a *openAttempt) provider.Result {
	began := time.Now()
	if code := w.unsendable(a, began); code != "" {
		return w.unsent(a, code, began)
	}
	w.metrics.untilSubmit(a, began)
	submission := a.Submission
	submission.Latest = a.latest
	// Stopping must not cut off an answer that is on its way; only the deadline may.
	ctx, span := w.tracer.Send(a.until.ctx, a.Traceparent, w.name, submission.Attempt)
	result := w.channel.Send(ctx, submission)
	span.Answered(result.Outcome.String(), result.Code, result.Outcome == provider.Accepted)
	if decide.Unsent(&result) && !decide.AnyAccepted(result.Parts) {
		return w.unsent(a, result.Code, time.Now())
	}
	if !a.latest.IsZero() {
		w.late.sent(began)
	}
	now := time.Now()
	took := now.Sub(began)
	w.noteAnswer(&result, took, now)
	w.metrics.answered(&result, took)
	return result
}

// noteAnswer adds the time of an answer, or of the wait for one, to the usual answer time and to
// the recent answers.
func (w *worker) noteAnswer(result *provider.Result, took time.Duration, now time.Time) {
	switch {
	case result.Outcome == provider.Refused: // it may not have been sent at all
		return
	case took >= w.load.overdueAfter():
		w.lately.missed.Add(1)
	case result.Outcome != provider.Unknown:
		w.lately.add(now.Sub(w.began))
	}
	w.load.observe(took)
	w.load.times.add(took, now)
}

// unsendable is the code that settles an attempt which may not leave now; empty when it may leave.
func (w *worker) unsendable(a *openAttempt, now time.Time) string {
	switch {
	case w.stop.Err() != nil:
		return decide.CodeStopping
	case a.Submission.Expired(now):
		return decide.CodeExpired
	case !now.Before(a.claimed.Add(w.timeout)):
		return decide.CodeStale
	case a.late(now), w.paused(now), !w.heartbeat.holds(a.claimed, now):
		return decide.CodeLate
	}
	return ""
}

// unsent is the result of an attempt that does not leave. It also counts it.
func (w *worker) unsent(a *openAttempt, code string, now time.Time) provider.Result {
	if code == decide.CodeLate && a.late(now) {
		w.late.missed(now)
	}
	w.metrics.unsent.WithLabelValues(w.name, code).Inc()
	return decide.NotSent(code)
}

// applyThrottle acts on a throttled answer: the channel is not chosen, and what is queued for it
// does not leave. The pause is the provider's Retry-After. Without one it is a quarter of a second,
// and doubles with each further second in which the provider throttles. No answer shortens a pause.
func (w *worker) applyThrottle(result *provider.Result) {
	switch result.Outcome {
	case provider.Throttled:
		pause := result.RetryAfter
		if pause <= 0 {
			pause = decide.PauseWhenUntimed << min(w.countThrottled()-1, 4)
		}
		raise(&w.throttledUntil, int64(time.Since(w.began)+min(pause, decide.LongestRetryAfter)))
	case provider.Accepted:
		if w.throttles.Load() > 0 {
			w.throttles.Store(0)
		}
	case provider.Unknown, provider.Rejected, provider.Refused:
	}
}

// countThrottled counts a throttled answer without a Retry-After, and returns how many there were
// since the last accepted one. The answers to one burst, within a second, count as one.
func (w *worker) countThrottled() int32 {
	now, last := int64(time.Since(w.began)), w.counted.Load()
	if w.throttles.Load() > 0 && now-last < int64(time.Second) ||
		!w.counted.CompareAndSwap(last, now) {
		return max(w.throttles.Load(), 1)
	}
	return w.throttles.Add(1)
}

// raise stores a value unless a larger one is stored.
func raise(at *atomic.Int64, to int64) {
	for {
		before := at.Load()
		if before >= to || at.CompareAndSwap(before, to) {
			return
		}
	}
}

// close settles as unsent what is still queued, waits for attempts in flight and closes the
// channel. After it, put must not be called.
func (w *worker) close(ctx context.Context) error {
	w.halt()
	close(w.inbox)
	done := make(chan struct{})
	go func() { w.running.Wait(); close(done) }()
	err := w.channel.Close(ctx)
	<-done // bounded by the attempts' deadlines
	return err
}

// alarm is a timer that is reset only when the time changes.
type alarm struct {
	timer *time.Timer
	set   time.Time
}

// at returns the channel that fires at a time; nil for the zero time.
func (a *alarm) at(now, at time.Time) <-chan time.Time {
	switch {
	case at.IsZero():
		return nil
	case a.timer == nil:
		a.timer = time.NewTimer(at.Sub(now))
	case !at.Equal(a.set) || !at.After(now):
		a.timer.Reset(at.Sub(now))
	}
	a.set = at
	return a.timer.C
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
