package receive

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/ledger"
)

// Run books receipts and closes messages until ctx ends. Then it tries once to book the rest.
func (d *Batcher) Run(ctx context.Context) {
	var loops sync.WaitGroup
	early := make(chan struct{}, 1)
	loops.Go(func() { d.sweep(ctx, early) })
	loops.Go(func() { d.tidy(ctx) })
	loops.Go(func() { d.watch(ctx) })
	d.book(ctx, early)
	loops.Wait()
	d.finish(context.WithoutCancel(ctx))
}

// book books batches that are full or have waited for the gather time.
func (d *Batcher) book(ctx context.Context, early chan<- struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		batch, wait := d.next(time.Now())
		if len(batch) == 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
			case <-d.wake:
			case <-timer.C:
			}
			continue
		}
		if rest := d.withRetry(ctx, batch, early); len(rest) > 0 {
			d.putBack(rest)
		}
	}
}

// next removes a batch from the queue. If none is due, it returns how long to wait for one.
func (d *Batcher) next(now time.Time) (batch []*entry, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.booking = nil
	if len(d.queue) == 0 {
		return nil, time.Hour
	}
	if left := d.due.Sub(now); left > 0 && len(d.queue) < batchSize {
		return nil, left
	}
	n := min(len(d.queue), batchSize)
	batch = slices.Clone(d.queue[:n])
	d.queue = slices.Delete(d.queue, 0, n)
	d.booking = batch
	return batch, 0
}

// putBack returns receipts to the front of the queue, which may then be longer than its bound.
func (d *Batcher) putBack(rest []*entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.booking = nil
	d.queue = slices.Concat(rest, d.queue)
}

// withRetry books a batch and repeats that while the database is unavailable. It returns the
// receipts that were not booked when ctx ended. To find a receipt that the ledger cannot store it
// halves the batch; such a receipt is dropped, so that it does not stop the others.
func (d *Batcher) withRetry(
	ctx context.Context, batch []*entry, early chan<- struct{},
) (rest []*entry) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := d.try(ctx, batch, early)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return batch
		}
		d.cfg.Trouble("receipts", err)
		switch {
		case ledger.Unavailable(err):
			if !sleep(ctx, pause) {
				return batch
			}
		case len(batch) == 1:
			d.cfg.Trouble("receipts", errRefused)
			tellAll(batch, true) // sent again, it would be refused again
			return nil
		default:
			half := len(batch) / 2
			return append(d.withRetry(ctx, batch[:half], early), d.withRetry(ctx, batch[half:],
				early)...)
		}
	}
}

// ledgerTimeout bounds one operation of the ledger. If the database's host disappears, it ends long
// before the TCP timeout.
const ledgerTimeout = 15 * time.Second

// try books a batch once.
func (d *Batcher) try(ctx context.Context, batch []*entry, early chan<- struct{}) error {
	receipts := make([]ledger.Receipt, len(batch))
	for i := range batch {
		receipts[i] = batch[i].receipt
	}
	closed, began := tally{traced: d.cfg.Tracer != nil}, time.Now()
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	got, err := d.cfg.Store.Receive(ctx, receipts, closed.tell)
	if err != nil {
		return err
	}
	tellAll(batch, true)
	d.metrics.booked(&got, &closed)
	d.trace(&closed, began)
	d.logDiscrepancies(got.Discrepancies)
	if got.Freed > 0 {
		d.cfg.Freed(int(got.Freed))
	}
	if got.Early > 0 {
		select {
		case early <- struct{}{}:
		default:
		}
	}
	return nil
}

// finish tries once to book the queued receipts, and refuses the rest.
func (d *Batcher) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	d.mu.Lock()
	rest := d.queue
	d.queue, d.ended = nil, true
	d.mu.Unlock()
	for batch := range slices.Chunk(rest, batchSize) {
		if err := d.try(ctx, batch, nil); err != nil {
			d.cfg.Trouble("receipts", err)
			break
		}
	}
	tellAll(rest, false)
}

const (
	// answerTimeout is how long a receipt may wait to be booked before its provider is asked to send
	// it again. SMSCs wait ten seconds or more for an answer.
	answerTimeout = 5 * time.Second
	// watchInterval is how often receipts past answerTimeout are searched.
	watchInterval = 500 * time.Millisecond
)

// entry is a receipt that waits to be booked.
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
func (d *Batcher) watch(ctx context.Context) {
	for sleep(ctx, watchInterval) {
		d.giveBack(time.Now())
	}
}

// giveBack asks the providers of late receipts to send them again. One that is being booked may be
// booked nevertheless, and then a second time, which does no harm.
func (d *Batcher) giveBack(now time.Time) {
	late := d.takeLate(now)
	given := 0
	for _, e := range late {
		if e.tell(false) {
			d.metrics.received(e.receipt.Channel, "refused")
			given++
		}
	}
	if given > 0 {
		d.cfg.Trouble("receipts", errLate)
	}
}

// takeLate removes the late receipts from the queue. It returns them and the late ones of the batch
// that is being booked.
func (d *Batcher) takeLate(now time.Time) (late []*entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.booking {
		if e.late(now) {
			late = append(late, e)
		}
	}
	d.queue = slices.DeleteFunc(d.queue, func(e *entry) bool {
		gone := e.late(now)
		if gone {
			late = append(late, e)
		}
		return gone
	})
	return late
}

// caller waits for several receipts to be booked.
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
