package smpp

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

const (
	// maxAwaited bounds the messages tracked until their receipt comes. Further ones are not
	// queried.
	maxAwaited = 100_000
	// maxQueries is how often one message is queried.
	maxQueries = 3
)

// receiptQueries sends query_sm for messages whose receipt does not come, see Config.QueryAfter.
// The list is in memory only: it recovers receipts that a carrier lost, not those that were missed
// during a restart of this process.
type receiptQueries struct {
	after     time.Duration
	pace      time.Duration // between two queries
	query     func(ctx context.Context, id string, source pdu.Address) (provider.Receipt, error)
	onReceipt func(r provider.Receipt, answer func(taken bool)) // Config.OnReceipt
	wake      chan struct{}                                     // capacity 1

	mu        sync.Mutex
	postponed *awaitedReceipt  // due, and without a slot; guarded by mu
	queue     []awaitedReceipt // in the order of due, that of acceptance; guarded by mu
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
		query: c.querySpare, onReceipt: c.cfg.OnReceipt,
		wake: make(chan struct{}, 1), open: make(map[string]bool),
	}
}

// expect tracks a message that was accepted at now.
func (h *receiptQueries) expect(reference string, source pdu.Address, now time.Time) {
	if reference == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) >= maxAwaited {
		return
	}
	h.open[reference] = true
	h.push(awaitedReceipt{reference: reference, source: source, due: now.Add(h.after)})
}

// push is called with mu held.
func (h *receiptQueries) push(m awaitedReceipt) {
	h.queue = append(h.queue, m)
	if len(h.queue) == 1 {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
}

// received removes a message whose final receipt has come.
func (h *receiptQueries) received(reference string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, reference)
}

// run queries one message after the other until ctx ends, at most at its pace and only into free
// slots. The pace holds even if the SMSC answers fast, so that an hour of missing receipts does not
// become a burst of queries.
func (h *receiptQueries) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		m, wait := h.next(time.Now())
		if wait == 0 {
			h.ask(ctx, m)
			if !pause(ctx, h.pace) {
				return
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-timer.C:
		}
	}
}

// next returns the message that is due, or how long to wait for one.
func (h *receiptQueries) next(now time.Time) (m awaitedReceipt, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.postponed; held != nil {
		h.postponed = nil
		if h.open[held.reference] {
			return *held, 0
		}
	}
	for len(h.queue) > 0 && !h.open[h.queue[0].reference] {
		h.queue = h.queue[1:]
	}
	if len(h.queue) == 0 {
		h.queue = nil
		return m, time.Hour
	}
	if wait = h.queue[0].due.Sub(now); wait > 0 {
		return m, wait
	}
	m, h.queue = h.queue[0], h.queue[1:]
	return m, 0
}

// ask queries a message once. Without a final state, or if the receipt was not taken, it is queried
// again later. If no slot was free, it is queried next.
func (h *receiptQueries) ask(ctx context.Context, m awaitedReceipt) {
	r, err := h.query(ctx, m.reference, m.source)
	if errors.Is(err, errNoSlot) {
		h.mu.Lock()
		h.postponed = &m
		h.mu.Unlock()
		return
	}
	if err != nil || !r.State.Final() {
		h.askLater(ctx, m)
		return
	}
	h.onReceipt(r, func(taken bool) {
		if taken {
			h.received(m.reference)
			return
		}
		h.askLater(ctx, m)
	})
}

// askLater schedules another query, unless maxQueries were made.
func (h *receiptQueries) askLater(ctx context.Context, m awaitedReceipt) {
	m.queries++
	m.due = time.Now().Add(h.after)
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.queries >= maxQueries || ctx.Err() != nil {
		delete(h.open, m.reference)
		return
	}
	h.push(m)
}
