package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// settleLinger is how long an answer may wait for others, so that one round trip settles many. The
// wait ends at once when nothing else is in flight.
const settleLinger = 20 * time.Millisecond

// settler collects answers and writes them in batches.
type settler struct {
	d     *Dispatcher
	wake  chan struct{} // capacity 1: there is a first answer, or the batch is complete
	done  chan struct{} // closed when run has ended
	ctx   context.Context
	abort context.CancelFunc // ends retries when the ledger does not come back

	mu      sync.Mutex
	answers []answered // guarded by mu; bounded by the slots
	ended   bool       // guarded by mu; no more answers come
}

func newSettler(d *Dispatcher) *settler {
	s := &settler{d: d, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.ctx, s.abort = context.WithCancel(context.Background())
	go s.run()
	return s
}

// add collects an answer. It wakes the settler only for the first answer and when no other is
// awaited, because waking a goroutine costs more than an answer. It does not block.
func (s *settler) add(a answered) {
	s.mu.Lock()
	s.answers = append(s.answers, a)
	wake := len(s.answers) == 1 || s.complete()
	s.mu.Unlock()
	if wake {
		s.wakeUp()
	}
}

// complete reports whether all that is open has been answered; mu is held.
func (s *settler) complete() bool { return len(s.answers) >= s.d.open.count() }

func (s *settler) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// stop writes the answers and ends the settler. When ctx ends first, the rest stays open in the
// ledger and is recovered as Unknown.
func (s *settler) stop(ctx context.Context) error {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wakeUp()
	defer s.abort()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		s.abort()
		<-s.done
		return fmt.Errorf("settle the last outcomes: %w", ctx.Err())
	}
}

func (s *settler) run() {
	defer close(s.done)
	var spare []answered
	for ended := false; !ended; {
		<-s.wake
		s.linger()
		s.mu.Lock()
		batch := s.answers
		s.answers, ended = spare[:0], s.ended
		s.mu.Unlock()
		if len(batch) > 0 {
			s.write(batch)
			clear(batch)
		}
		spare = batch
	}
}

// linger waits for more answers until every attempt in flight has answered or the time is over.
func (s *settler) linger() {
	over := time.NewTimer(settleLinger)
	defer over.Stop()
	for {
		s.mu.Lock()
		ready := s.ended || s.complete()
		s.mu.Unlock()
		if ready {
			return
		}
		select {
		case <-s.wake:
		case <-over.C:
			return
		}
	}
}

// write settles a batch and frees its slots. It retries while PostgreSQL is away: a known outcome
// must not become Unknown.
func (s *settler) write(batch []answered) {
	var unanswered []*decide.Attempt
	for i := range batch {
		if batch[i].result.Outcome == provider.Unknown {
			unanswered = append(unanswered, batch[i].attempt.Attempt)
		}
	}
	s.lookForReceipts(unanswered)
	now := s.d.now()
	settlements, again := make([]ledger.Settlement, len(batch)), false
	settling := decide.NewSettling(len(batch), now)
	for i := range batch {
		settlements[i] = settling.Settle(batch[i].attempt.Attempt, &batch[i].result)
		again = again || settlements[i].State == ledger.Retry || settlements[i].NextAt.Equal(now)
		s.d.due.add(settlements[i].NextAt, now)
	}
	began := time.Now()
	refused := s.persist(settlements)
	for _, seq := range refused {
		s.leaveOpen(batch, seq)
	}
	s.trace(batch, settlements, refused, began)
	s.d.cfg.Metrics.settle.Observe(time.Since(began).Seconds())
	s.d.open.settled(batch)
	for i := range batch {
		batch[i].attempt.slots.release(1)
	}
	if again {
		s.d.backlog.Store(true)
	}
	if refunded, room := s.refunded(settlements), s.roomAgain(batch); again || refunded || room {
		s.d.wake()
	}
}

// lookForReceipts looks until the ledger answers: a lane that resends must not repeat a message for
// which a receipt has come. After an error that lasts, the search sees the receipt later, perhaps
// too late to stop a resend.
func (s *settler) lookForReceipts(unanswered []*decide.Attempt) {
	_ = s.withRetry("receipts", func() error {
		return s.d.lookForReceipts(s.ctx, unanswered...)
	})
}

// withRetry repeats a call while the database is unavailable, and reports its errors.
func (s *settler) withRetry(where string, try func() error) error {
	return ledger.Repeat(s.ctx, firstPause, longestPause, func() error {
		err := try()
		if err != nil && s.ctx.Err() == nil {
			s.d.trouble(where, err)
		}
		return err
	})
}

// refunded adds to the wake set the limits in money that got something back. Waiting messages are
// woken after the commit: earlier they would not see the refund.
func (s *settler) refunded(settlements []ledger.Settlement) (some bool) {
	for i := range settlements {
		for _, r := range settlements[i].Refunds {
			key := admission.Key{Scope: r.Scope, Window: r.Window, Unit: admission.Money}
			s.d.wakeSet.add(key.On(r.Channel), 1)
			some = true
		}
	}
	return some
}

// roomAgain adds to the wake set the channels on which answers have made room.
func (s *settler) roomAgain(batch []answered) (some bool) {
	for i := range batch {
		a := batch[i].attempt
		if a.load != nil && a.load.takeWaiting(1) > 0 {
			s.d.wakeSet.add(a.Channel, 1)
			some = true
		}
	}
	return some
}

// leaveOpen leaves the attempt of one message open.
func (s *settler) leaveOpen(batch []answered, seq int64) {
	for i := range batch {
		if batch[i].attempt.Seq == seq {
			s.d.open.leaveOpen(batch[i].attempt)
		}
	}
}

// persist writes settlements until the ledger has them. One that the ledger refuses is reported and
// left open, so that it does not delay the others; its message is returned.
func (s *settler) persist(settlements []ledger.Settlement) (refused []int64) {
	err := s.withRetry("settle", func() error {
		return withTimeout(s.ctx, func(ctx context.Context) error {
			return s.d.cfg.Ledger.Settlements.Settle(ctx, settlements)
		})
	})
	switch {
	case err == nil || s.ctx.Err() != nil:
		return nil
	case len(settlements) == 1:
		s.d.trouble("settle", errUnwritten)
		return []int64{settlements[0].Seq}
	}
	half := len(settlements) / 2
	return append(s.persist(settlements[:half]), s.persist(settlements[half:])...)
}

var errUnwritten = errors.New(
	"an outcome could not be written and stays open until this instance ends")
