package dispatch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/provider"
)

// Codes of attempts that this process itself stopped before any byte left. They say
// nothing about the channel, so it stays a candidate.
const (
	codeStopping = "stopping" // the process or the channel is being stopped
	codeStale    = "stale"    // the send deadline passed before the submit's turn came
)

// worker sends what has been claimed for one channel: pace, then provider.Send.
type worker struct {
	name    string
	channel provider.Channel
	pace    *pacer
	timeout time.Duration
	metrics *Metrics
	answers chan<- answered
	// Both queues are bounded by Config.MaxUnsettled, so that putting a flight never blocks.
	express chan *flight // of the first lane
	queue   chan *flight // of the others

	// throttledUntil is when the provider's last "slow down" has passed, in nanoseconds
	// since began, which do not jump with the wall clock; throttles counts them since the last Accepted.
	began          time.Time
	throttledUntil atomic.Int64
	throttles      atomic.Int32

	stop    context.Context // ended by halt: what has not left yet does not leave any more
	halt    context.CancelFunc
	senders sync.WaitGroup
}

func newWorker(c *Channel, channel provider.Channel, cfg *Config, answers chan<- answered) *worker {
	w := &worker{
		name: c.Name, began: time.Now(), channel: channel, pace: newPacer(c.PerSecond, c.PaceUnit),
		timeout: cfg.SendTimeout, metrics: cfg.Metrics, answers: answers,
		express: make(chan *flight, cfg.MaxUnsettled), queue: make(chan *flight, cfg.MaxUnsettled),
	}
	w.stop, w.halt = context.WithCancel(context.Background())
	for range max(1, min(c.Concurrency, cfg.MaxUnsettled)) {
		w.senders.Go(w.run)
	}
	return w
}

// ready says why nothing can be sent on the channel now; empty when it can.
func (w *worker) ready(now time.Time) string {
	if now.Sub(w.began) < time.Duration(w.throttledUntil.Load()) {
		return throttled
	}
	if ok, why := w.channel.Ready(); !ok || why == provider.Probing {
		return why
	}
	return ""
}

// repace brings the limit of a new routing into force. The connections, the breaker and what the
// provider asked for stay as they are.
func (w *worker) repace(c *Channel) { w.pace.set(time.Now(), c.PerSecond, c.PaceUnit) }

// put queues a flight.
func (w *worker) put(f *flight) {
	if f.express {
		w.express <- f
	} else {
		w.queue <- f
	}
}

func (w *worker) run() {
	for f := w.take(); f != nil; f = w.take() {
		result := w.send(f)
		w.heed(&result)
		w.answers <- answered{flight: f, result: result}
	}
}

// take returns the next flight, those of the first lane before others; nil when both
// queues are closed and empty.
func (w *worker) take() *flight {
	select {
	case f, ok := <-w.express:
		if ok {
			return f
		}
		return <-w.queue
	default:
	}
	select {
	case f, ok := <-w.express:
		if ok {
			return f
		}
		return <-w.queue
	case f, ok := <-w.queue:
		if ok {
			return f
		}
		return <-w.express
	}
}

// send is the last stop before the wire. The flight's deadline bounds waiting for the
// pacer and for the answer together.
func (w *worker) send(f *flight) provider.Result {
	deadline := f.claimed.Add(w.timeout)
	inTurn := w.pace.wait(w.stop, deadline, f.segments)
	began := time.Now()
	if !inTurn || w.stop.Err() != nil || began.After(deadline) {
		return notSent(w.stop.Err() != nil)
	}
	w.metrics.untilSubmit(f, began)
	// Stopping must not cut off an answer that is on its way: only the deadline may.
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	result := w.channel.Send(ctx, f.submission)
	w.metrics.answered(w.name, &result, time.Since(began))
	return result
}

func notSent(stopping bool) provider.Result {
	if stopping {
		return provider.Result{Outcome: provider.Refused, Code: codeStopping, Err: errors.New("the dispatcher is stopping; another instance takes the message")}
	}
	return provider.Result{Outcome: provider.Refused, Code: codeStale, Err: errors.New("its turn did not come before the send deadline")}
}

// heed keeps the channel from being chosen for a while after a "slow down": for as
// long as the provider asked, else for a quarter of a second that doubles with each
// further one.
func (w *worker) heed(result *provider.Result) {
	switch result.Outcome {
	case provider.Throttled:
		pause := result.RetryAfter
		if pause <= 0 {
			pause = pauseWhenUntimed << min(w.throttles.Add(1)-1, 4)
		}
		w.throttledUntil.Store(int64(time.Since(w.began) + min(pause, longestRetryAfter)))
	case provider.Accepted:
		if w.throttles.Load() > 0 {
			w.throttles.Store(0)
		}
	case provider.Unknown, provider.Rejected, provider.Refused:
	}
}

// close sends back what is still queued, waits for what is under way and closes the channel.
// Nobody may put a flight into it any more.
func (w *worker) close(ctx context.Context) error {
	w.halt()
	close(w.express)
	close(w.queue)
	w.senders.Go(w.run) // every sender may be waiting for an answer; what is queued goes back at once
	done := make(chan struct{})
	go func() { w.senders.Wait(); close(done) }()
	err := w.channel.Close(ctx)
	<-done // bounded by the flights' deadlines
	return err
}
