package receive

import (
	"context"
	"slices"
	"sync"
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
	var closed tally
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	got, err := d.cfg.Store.Receive(ctx, receipts, closed.tell)
	if err != nil {
		return err
	}
	tellAll(batch, true)
	d.metrics.booked(&got, &closed)
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
