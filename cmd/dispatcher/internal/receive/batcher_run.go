package receive

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/ledger"
)

// Run records receipts and closes messages until ctx ends. Then it tries once to record the rest.
func (b *Batcher) Run(ctx context.Context) {
	var loops sync.WaitGroup
	early := make(chan struct{}, 1)
	loops.Go(func() { b.sweep(ctx, early) })
	loops.Go(func() { b.tidy(ctx) })
	loops.Go(func() { b.watch(ctx) })
	b.record(ctx, early)
	loops.Wait()
	b.finish(context.WithoutCancel(ctx))
}

// record records batches that are full or have waited for the gather time.
func (b *Batcher) record(ctx context.Context, early chan<- struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		batch, wait := b.next(time.Now())
		if len(batch) == 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
			case <-b.wake:
			case <-timer.C:
			}
			continue
		}
		if rest := b.withRetry(ctx, batch, early); len(rest) > 0 {
			b.putBack(rest)
		}
	}
}

// next removes a batch from the queue. If none is due, it returns how long to wait for one.
func (b *Batcher) next(now time.Time) (batch []*entry, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writing = nil
	if len(b.queue) == 0 {
		return nil, time.Hour
	}
	if left := b.due.Sub(now); left > 0 && len(b.queue) < batchSize {
		return nil, left
	}
	n := min(len(b.queue), batchSize)
	batch = slices.Clone(b.queue[:n])
	b.queue = slices.Delete(b.queue, 0, n)
	b.writing = batch
	return batch, 0
}

// putBack returns receipts to the front of the queue, which may then be longer than its bound.
func (b *Batcher) putBack(rest []*entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writing = nil
	b.queue = slices.Concat(rest, b.queue)
}

// withRetry records a batch and repeats that while the database is unavailable. It returns the
// receipts that were not recorded when ctx ended. To find a receipt that the ledger cannot store it
// halves the batch; such a receipt is dropped, so that it does not stop the others.
func (b *Batcher) withRetry(
	ctx context.Context, batch []*entry, early chan<- struct{},
) (rest []*entry) {
	err := ledger.Repeat(ctx, firstPause, longestPause, func() error {
		err := b.try(ctx, batch, early)
		if err != nil && ctx.Err() == nil {
			b.cfg.Trouble("receipts", err)
		}
		return err
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return batch
	case len(batch) == 1:
		b.cfg.Trouble("receipts", errRefused)
		tellAll(batch, true) // sent again, it would be refused again
		return nil
	}
	half := len(batch) / 2
	return append(b.withRetry(ctx, batch[:half], early), b.withRetry(ctx, batch[half:], early)...)
}

// ledgerTimeout bounds one operation of the ledger. If the database's host disappears, it ends long
// before the TCP timeout.
const ledgerTimeout = 15 * time.Second

// try records a batch once.
func (b *Batcher) try(ctx context.Context, batch []*entry, early chan<- struct{}) error {
	receipts := make([]ledger.Receipt, len(batch))
	for i := range batch {
		receipts[i] = batch[i].receipt
	}
	closed, began := stateCounts{traced: b.cfg.Tracer != nil}, time.Now()
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	got, err := b.cfg.Store.Receive(ctx, receipts, closed.tell)
	if err != nil {
		return err
	}
	tellAll(batch, true)
	b.metrics.recorded(&got, &closed)
	b.trace(&closed, began)
	b.logDiscrepancies(got.Discrepancies)
	if got.Freed > 0 {
		b.cfg.Freed(int(got.Freed))
	}
	if got.Early > 0 {
		select {
		case early <- struct{}{}:
		default:
		}
	}
	return nil
}

// finish tries once to record the queued receipts, and refuses the rest.
func (b *Batcher) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	b.mu.Lock()
	rest := b.queue
	b.queue, b.ended = nil, true
	b.mu.Unlock()
	for batch := range slices.Chunk(rest, batchSize) {
		if err := b.try(ctx, batch, nil); err != nil {
			b.cfg.Trouble("receipts", err)
			break
		}
	}
	tellAll(rest, false)
}

const (
	// answerTimeout is how long a receipt may wait to be recorded before its provider is asked to send
	// it again. SMSCs wait ten seconds or more for an answer.
	answerTimeout = 5 * time.Second
	// watchInterval is how often receipts past answerTimeout are searched.
	watchInterval = 500 * time.Millisecond
)

// entry is a receipt that waits to be recorded.
type entry struct {
	receipt  ledger.Receipt
	until    time.Time        // after this it is answered with false; zero for never
	answer   func(taken bool) // called once; it must not block
	answered atomic.Bool
}

// tell calls answer, unless it was called before. It reports whether it did.
func (e *entry) tell(taken bool) bool {
	if e.answered.Swap(true) {
		return false
	}
	e.answer(taken)
	return true
}

// late reports whether the entry is past its until without an answer.
func (e *entry) late(now time.Time) bool {
	return !e.until.IsZero() && now.After(e.until) && !e.answered.Load()
}

// tellAll answers the entries of a batch that have no answer yet.
func tellAll(batch []*entry, taken bool) {
	for _, e := range batch {
		e.tell(taken)
	}
}

// watch calls giveBack regularly until ctx ends.
func (b *Batcher) watch(ctx context.Context) {
	for ledger.Pause(ctx, watchInterval) {
		b.giveBack(time.Now())
	}
}

// giveBack asks the providers of late receipts to send them again. One that is being recorded may
// be recorded nevertheless, and then a second time, which does no harm.
func (b *Batcher) giveBack(now time.Time) {
	late := b.takeLate(now)
	given := 0
	for _, e := range late {
		if e.tell(false) {
			b.metrics.received(e.receipt.Channel, "refused")
			given++
		}
	}
	if given > 0 {
		b.cfg.Trouble("receipts", errLate)
	}
}

// takeLate removes the late receipts from the queue. It returns them and the late ones of the batch
// that is being recorded.
func (b *Batcher) takeLate(now time.Time) (late []*entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.writing {
		if e.late(now) {
			late = append(late, e)
		}
	}
	b.queue = slices.DeleteFunc(b.queue, func(e *entry) bool {
		gone := e.late(now)
		if gone {
			late = append(late, e)
		}
		return gone
	})
	return late
}

// caller waits for several receipts to be recorded.
type caller struct {
	left   atomic.Int32
	failed atomic.Bool
	done   chan struct{} // closed with the last of them
}

// answer records the result of one receipt.
func (c *caller) answer(taken bool) {
	if !taken {
		c.failed.Store(true)
	}
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}
