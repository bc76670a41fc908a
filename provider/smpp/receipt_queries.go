package smpp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

const (
	// maxAwaited bounds the messages without a final receipt. Further ones are not queried.
	maxAwaited = 100_000
	// maxQueries is how often one message is queried.
	maxQueries = 3
	// reportedBatch is how many references one call of Config.Reported has, and a few more if several
	// are due at the same time; reportedPause is when it is called again after an error.
	reportedBatch, reportedPause = 500, time.Second
)

// receiptQueries sends query_sm for messages whose receipt does not come, see Config.QueryAfter.
// The list is in memory only: it recovers receipts that a carrier lost, but not those that came
// while this process was restarted or reopened the channel.
type receiptQueries struct {
	after     time.Duration
	pace      time.Duration // between two queries
	query     func(ctx context.Context, id string, source pdu.Address) (provider.Receipt, error)
	onReceipt func(r provider.Receipt, answer func(taken bool)) // Config.OnReceipt
	reported  func(ctx context.Context, references []string) ([]string, error)
	wake      chan struct{} // capacity 1
	// checked is the due time up to which reported was called; only run uses it.
	checked time.Time

	mu        sync.Mutex
	postponed *awaitedReceipt  // due, but not queried yet; guarded by mu
	queue     []awaitedReceipt // in the order of due; guarded by mu
	open      map[string]bool  // references without a final receipt; guarded by mu
}

// awaitedReceipt is a message without a final receipt.
type awaitedReceipt struct {
	reference string
	source    pdu.Address
	due       time.Time
	queries   int
}

func newReceiptQueries(c *Client) *receiptQueries {
	return &receiptQueries{
		after: c.cfg.QueryAfter,
		pace:  time.Second / time.Duration(cmp.Or(c.cfg.QueryRate, DefaultQueryRate)),
		query: c.query, onReceipt: c.cfg.OnReceipt, reported: c.cfg.Reported,
		wake: make(chan struct{}, 1), open: make(map[string]bool),
	}
}

// expect tracks a message that was accepted at now.
func (q *receiptQueries) expect(reference string, source pdu.Address, now time.Time) {
	if reference == "" {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.open) >= maxAwaited {
		return
	}
	if len(q.queue) >= 2*maxAwaited { // at least half of them have had their receipt
		q.queue = slices.DeleteFunc(q.queue,
			func(r awaitedReceipt) bool { return !q.open[r.reference] })
	}
	q.open[reference] = true
	q.push(awaitedReceipt{reference: reference, source: source, due: now.Add(q.after)})
}

// push is called with mu held.
func (q *receiptQueries) push(r awaitedReceipt) {
	q.queue = append(q.queue, r)
	if len(q.queue) == 1 {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

// received removes a message whose final receipt has come.
func (q *receiptQueries) received(reference string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, reference)
}

// run queries one message after the other until ctx ends, with a pause of pace, and only while a
// slot is free. The pace holds even if the SMSC answers fast, so that an hour of missing receipts
// does not become a burst of queries.
func (q *receiptQueries) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := time.Now()
		if q.forgetReported(ctx, now) != nil {
			if !pause(ctx, reportedPause) {
				return
			}
			continue
		}
		r, wait := q.next(now)
		if wait == 0 {
			q.ask(ctx, r)
			if !pause(ctx, q.pace) {
				return
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-q.wake:
		case <-timer.C:
		}
	}
}

// forgetReported removes those of the next due messages whose final receipt another process got.
func (q *receiptQueries) forgetReported(ctx context.Context, now time.Time) error {
	if q.reported == nil {
		return nil
	}
	references, last := q.unchecked(now)
	if len(references) == 0 {
		return nil
	}
	reported, err := q.reported(ctx, references)
	if err != nil {
		return err
	}
	for _, reference := range reported {
		q.received(reference)
	}
	q.checked = last
	return nil
}

// unchecked returns the next messages that are due, and when the last of them was, unless the first
// one has been checked. All that were due at the same time as the last one belong to them.
func (q *receiptQueries) unchecked(now time.Time) (references []string, last time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.queue {
		if !q.open[r.reference] {
			continue
		}
		if r.due.After(now) || !r.due.After(q.checked) ||
			len(references) >= reportedBatch && r.due.After(last) {
			break
		}
		references, last = append(references, r.reference), r.due
	}
	return references, last
}

// next returns the message that is due, or how long to wait for one.
func (q *receiptQueries) next(now time.Time) (r awaitedReceipt, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if held := q.postponed; held != nil {
		q.postponed = nil
		if q.open[held.reference] {
			return *held, 0
		}
	}
	for len(q.queue) > 0 && !q.open[q.queue[0].reference] {
		q.queue = q.queue[1:]
	}
	if len(q.queue) == 0 {
		q.queue = nil
		return r, time.Hour
	}
	if wait = q.queue[0].due.Sub(now); wait > 0 {
		return r, wait
	}
	r, q.queue = q.queue[0], q.queue[1:]
	return r, 0
}

// ask queries a message once. Without a final state, or if the receipt was not taken, it is queried
// again later. If no slot was free, or no bind was up, it is queried next.
func (q *receiptQueries) ask(ctx context.Context, awaited awaitedReceipt) {
	r, err := q.query(ctx, awaited.reference, awaited.source)
	if errors.Is(err, errNoSlot) || errors.Is(err, errNoBind) || errors.Is(err, errStalled) {
		q.mu.Lock()
		q.postponed = &awaited
		q.mu.Unlock()
		return
	}
	if err != nil || !r.State.Final() {
		q.askLater(ctx, awaited)
		return
	}
	q.onReceipt(r, func(taken bool) {
		if taken {
			q.received(awaited.reference)
			return
		}
		q.askLater(ctx, awaited)
	})
}

// askLater schedules another query, unless maxQueries were made.
func (q *receiptQueries) askLater(ctx context.Context, r awaitedReceipt) {
	r.queries++
	r.due = time.Now().Add(q.after)
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.queries >= maxQueries || ctx.Err() != nil {
		delete(q.open, r.reference)
		return
	}
	q.push(r)
}
