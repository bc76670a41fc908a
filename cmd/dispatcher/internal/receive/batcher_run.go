package receive

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/ledger"
)

// Run books receipts and closes messages until ctx ends, and then books what can be booked at once.
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

// book books batches as they fill up or have waited for long enough.
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

// next takes a batch from the queue, or says how long there is none to book.
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

// putBack returns receipts to the front of the queue; there may be more than there is room for
// then.
func (d *Batcher) putBack(rest []*entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.booking = nil
	d.queue = slices.Concat(rest, d.queue)
}

// withRetry books a batch, however long the database is away, and returns what ctx did not leave
// time for. A receipt that the ledger refuses is left out rather than allowed to hold up the
// others.
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
			tellAll(batch, true) // it would be refused again
			return nil
		default:
			half := len(batch) / 2
			return append(d.withRetry(ctx, batch[:half], early), d.withRetry(ctx, batch[half:],
				early)...)
		}
	}
}

// ledgerTimeout bounds one operation of the ledger: a database host that vanished without a word
// must not be waited for until the TCP timeout.
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
	d.logDiscrepancies(got.Oddities)
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

// finish tries once to book whatever still waits. What it cannot book nobody takes any more.
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
	// answerTimeout is how long a provider that waits on a connection is left without an answer
	// while its receipt cannot be booked: less than what SMSCs wait for, which is ten seconds and
	// more.
	answerTimeout = 5 * time.Second
	// watchInterval is how often it is looked for those who have waited for so long.
	watchInterval = 500 * time.Millisecond
)

// entry is a receipt that waits to be booked, and who wants to know.
type entry struct {
	receipt  ledger.Receipt
	until    time.Time        // it is given back when it is not booked by then; zero keeps it
	answer   func(taken bool) // called once; it must not block
	answered atomic.Bool
}

// tell answers, and reports whether nobody had before.
func (e *entry) tell(taken bool) bool {
	if e.answered.Swap(true) {
		return false
	}
	e.answer(taken)
	return true
}

// late reports whether a provider has waited for too long.
func (e *entry) late(now time.Time) bool {
	return !e.until.IsZero() && now.After(e.until) && !e.answered.Load()
}

// tellAll tells all who wait for a batch and have heard nothing yet.
func tellAll(batch []*entry, taken bool) {
	for _, e := range batch {
		e.tell(taken)
	}
}

// watch gives late receipts back until ctx ends.
func (d *Batcher) watch(ctx context.Context) {
	for sleep(ctx, watchInterval) {
		d.giveBack(time.Now())
	}
}

// giveBack asks the providers of late receipts to send them again. Those that are just being booked
// may be booked all the same, and then twice, which does no harm.
func (d *Batcher) giveBack(now time.Time) {
	late := d.takeLate(now)
	given := 0
	for _, e := range late {
		if e.tell(false) {
			d.metrics.heard(e.receipt.Channel, "refused")
			given++
		}
	}
	if given > 0 {
		d.cfg.Trouble("receipts", errLate)
	}
}

// takeLate takes what is late from the queue and finds what is late of the batch under way.
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

// answer notes what became of one of them.
func (c *caller) answer(taken bool) {
	if !taken {
		c.failed.Store(true)
	}
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}
