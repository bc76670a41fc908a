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
	// leave together, so that a fast channel does not need a timer for each submit.
	tick = time.Millisecond
	// sweepInterval is how often those are looked for that wait for a sender in vain.
	sweepInterval = 10 * time.Millisecond
	// hurry is how soon after its claim an attempt must leave to count as one that a queue makes
	// late.
	hurry = 2 * time.Second
)

// worker sends what has been claimed for one channel, each attempt at its release time. The feeder
// hands those whose time has come to the senders. There are as many senders as the channel may have
// submits under way.
type worker struct {
	name        string
	channel     provider.Channel
	timeout     time.Duration
	concurrency int32
	heartbeat   *heartbeat
	metrics     *Metrics
	tracer      *tracing.Tracer // nil records nothing
	answers     chan<- answered

	inbox    chan *openAttempt // room for Config.MaxUnsettled attempts, so that a send never blocks
	turns    chan *openAttempt // from the feeder to the senders; closed by the feeder
	schedule sendSchedule      // owned by feed

	load     *load
	outSince []atomic.Int64 // by sender: when its submission went out, since began; 0 for none
	lately   answersLately

	sending       atomic.Int32 // senders at work
	waitingUrgent atomic.Int32 // attempts in a hurry that are due and wait for a sender

	// throttledUntil is when the longest pause that the provider asked for is over, in nanoseconds
	// since began, so that a change of the wall clock does not matter. throttles counts the answers
	// "slow down" without a time since the last Accepted; several within a second count once.
	// counted is when the last of them was counted.
	began          time.Time
	throttledUntil atomic.Int64
	throttles      atomic.Int32
	counted        atomic.Int64
	late           lateBackoff

	stop    context.Context // ended by halt: what has not left yet does not leave any more
	halt    context.CancelFunc
	running sync.WaitGroup // feeder and senders
}

func newWorker(
	c *decide.Channel, channel provider.Channel, cfg *Config, heart *heartbeat, load *load,
	answers chan<- answered,
) *worker {
	w := &worker{
		name: c.Name, began: time.Now(), channel: channel, timeout: cfg.SendTimeout,
		concurrency: int32(
			max(1, min(c.Concurrency, cfg.MaxUnsettled)),
		), //nolint:gosec // Some hundreds.
		heartbeat: heart, metrics: cfg.Metrics, tracer: cfg.Tracer, answers: answers, load: load,
		inbox: make(chan *openAttempt, cfg.MaxUnsettled), turns: make(chan *openAttempt),
	}
	w.stop, w.halt = context.WithCancel(context.Background())
	w.outSince = make([]atomic.Int64, w.concurrency)
	w.running.Go(w.feed)
	for sender := range w.outSince {
		w.running.Go(func() { w.run(&w.outSince[sender]) })
	}
	return w
}

// ready says why nothing can be sent on the channel now; empty when it can.
func (w *worker) ready(now time.Time) string {
	if w.paused(now) {
		return decide.Throttled
	}
	ok, why := w.channel.Ready()
	switch {
	case !ok:
		return why
	case !w.heartbeat.alive(now), w.late.active(now),
		w.sending.Load() >= w.concurrency && w.waitingUrgent.Load() >= w.concurrency:
		return decide.Busy
	case why == provider.Probing:
		return why
	}
	return ""
}

// paused reports whether the provider asked to send nothing now.
func (w *worker) paused(now time.Time) bool {
	return now.Sub(w.began) < time.Duration(w.throttledUntil.Load())
}

// put queues an attempt.
func (w *worker) put(f *openAttempt) { w.inbox <- f }

// feed hands each attempt to a sender at its release time, those of the first lane before others,
// and sends back those that can no longer leave. It ends when the inbox is closed and empty.
func (w *worker) feed() {
	defer close(w.turns)
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
		next := w.schedule.next()
		w.count(next)
		turns := w.turns
		if next == nil {
			turns = nil
		}
		select {
		case f, open := <-w.inbox:
			if open {
				w.schedule.add(f, now)
			}
		case turns <- next:
			w.schedule.pop()
		case <-alarm.at(now, w.wakeAt(now, swept)):
		}
	}
	w.sendBack(w.schedule.all(), time.Now())
}

// open takes in all that has been put, so that no sender gets another before one of the first lane
// that came meanwhile. It is false when the inbox is closed and empty.
func (w *worker) open(now time.Time) bool {
	for {
		select {
		case f, open := <-w.inbox:
			if !open {
				return false
			}
			w.schedule.add(f, now)
		default:
			return true
		}
	}
}

// wakeAt is when the feeder has to look again although nothing happened; zero for never.
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

// sweep sends back what is due and may not leave any more, though no sender has come for it.
func (w *worker) sweep(now time.Time) {
	w.sendBack(
		w.schedule.take(func(f *openAttempt) bool { return w.unsendable(f, now) != "" }), now,
	)
}

func (w *worker) sendBack(attempts []*openAttempt, now time.Time) {
	for _, f := range attempts {
		result := w.unsent(f, w.unsendable(f, now), now)
		f.answer(w.answers, &result)
	}
}

// count notes how many attempts in a hurry wait for a sender: all that are due if the next one is
// in one.
func (w *worker) count(next *openAttempt) {
	n := 0
	if next != nil && !next.latest.IsZero() && next.latest.Sub(next.claimed) < hurry {
		n = w.schedule.waiting()
	}
	w.waitingUrgent.Store(int32(n)) //nolint:gosec // At most Config.MaxUnsettled.
}

// run sends until the feeder ends. since tells others when its submission went out.
func (w *worker) run(since *atomic.Int64) {
	for f := range w.turns {
		w.sending.Add(1)
		since.Store(int64(time.Since(w.began)) + 1)
		result := w.send(f)
		since.Store(0)
		w.applyThrottle(&result)
		w.sending.Add(-1)
		f.answer(w.answers, &result)
	}
}

// send is the last stop before the wire.
func (w *worker) send(f *openAttempt) provider.Result {
	began := time.Now()
	if code := w.unsendable(f, began); code != "" {
		return w.unsent(f, code, began)
	}
	w.metrics.untilSubmit(f, began)
	// Stopping must not cut off an answer that is on its way: only the deadline may.
	ctx, cancel := context.WithDeadline(context.Background(), f.claimed.Add(w.timeout))
	defer cancel()
	submission := f.Submission
	submission.Latest = f.latest
	ctx, span := w.tracer.Send(ctx, f.Traceparent, w.name, submission.Attempt)
	result := w.channel.Send(ctx, submission)
	span.Answered(result.Outcome.String(), result.Code, result.Outcome == provider.Accepted)
	if decide.Unsent(&result) && !decide.AnyAccepted(result.Parts) {
		return w.unsent(f, result.Code, time.Now())
	}
	if !f.latest.IsZero() {
		w.late.sent(began)
	}
	now := time.Now()
	took := now.Sub(began)
	w.noteAnswer(&result, took, now)
	w.metrics.answered(w.name, &result, took)
	return result
}

// noteAnswer takes what came of a submission into the usual answer time and into the answers of
// late.
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

// unsendable is the code under which an attempt goes back that may not leave now; empty when it
// may.
func (w *worker) unsendable(f *openAttempt, now time.Time) string {
	switch {
	case w.stop.Err() != nil:
		return decide.CodeStopping
	case f.Submission.Expired(now):
		return decide.CodeExpired
	case !now.Before(f.claimed.Add(w.timeout)):
		return decide.CodeStale
	case f.late(now), w.paused(now), !w.heartbeat.holds(f.claimed, now):
		return decide.CodeLate
	}
	return ""
}

// unsent is what comes of an attempt that does not leave, and counts it.
func (w *worker) unsent(f *openAttempt, code string, now time.Time) provider.Result {
	if code == decide.CodeLate && f.late(now) {
		w.late.missed(now)
	}
	w.metrics.unsent.WithLabelValues(w.name, code).Inc()
	return decide.NotSent(code)
}

// applyThrottle acts on a "slow down": the channel is not chosen, and what is queued for it does
// not leave. The pause is the one that the provider asked for. If it named none, the pause is a
// quarter of a second, and doubles with each further second in which it says so. An answer without
// a time does not shorten a pause that another answer named.
func (w *worker) applyThrottle(result *provider.Result) {
	switch result.Outcome {
	case provider.Throttled:
		pause := result.RetryAfter
		if pause <= 0 {
			pause = decide.PauseWhenUntimed << min(w.untimed()-1, 4)
		}
		raise(&w.throttledUntil, int64(time.Since(w.began)+min(pause, decide.LongestRetryAfter)))
	case provider.Accepted:
		if w.throttles.Load() > 0 {
			w.throttles.Store(0)
		}
	case provider.Unknown, provider.Rejected, provider.Refused:
	}
}

// untimed counts a "slow down" that names no time, once a second: answers to one burst say the
// same.
func (w *worker) untimed() int32 {
	now, last := int64(time.Since(w.began)), w.counted.Load()
	if w.throttles.Load() > 0 && now-last < int64(time.Second) ||
		!w.counted.CompareAndSwap(last, now) {
		return max(w.throttles.Load(), 1)
	}
	return w.throttles.Add(1)
}

// raise stores a value unless a larger one is there.
func raise(at *atomic.Int64, to int64) {
	for {
		before := at.Load()
		if before >= to || at.CompareAndSwap(before, to) {
			return
		}
	}
}

// close sends back what is still queued, waits for what is under way and closes the channel.
// Nobody may put an attempt into it any more.
func (w *worker) close(ctx context.Context) error {
	w.halt()
	close(w.inbox)
	done := make(chan struct{})
	go func() { w.running.Wait(); close(done) }()
	err := w.channel.Close(ctx)
	<-done // bounded by the attempts' deadlines
	return err
}

// alarm is a timer that is set anew only when the time changes.
type alarm struct {
	timer *time.Timer
	set   time.Time
}

// at returns the channel on which the alarm goes off at a time; nil for the zero time.
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
