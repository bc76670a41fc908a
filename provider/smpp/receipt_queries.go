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
	// maxAwaited bounds the messages that are remembered until their receipt comes. Those beyond
	// have no late query.
	maxAwaited = 100_000
	// maxQueries is how often one message is asked for.
	maxQueries = 3
)

// receiptQueries asks for the fate of messages whose receipt does not come, see Config.QueryAfter.
// What it remembers is lost with the process: it saves receipts that a carrier loses, and does not
// replace them.
type receiptQueries struct {
	after time.Duration
	pace  time.Duration // between two queries
	query func(ctx context.Context, reference string, source pdu.Address) (provider.Receipt,
		error)
	onReceipt func(r provider.Receipt, answer func(taken bool)) // Config.OnReceipt
	wake      chan struct{}                                     // capacity 1

	mu        sync.Mutex
	unslotted *awaitedReceipt  // due, and without a slot; guarded by mu
	queue     []awaitedReceipt // in the order of due, which is that of their coming; guarded by mu
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

// expect remembers a message that was accepted at now.
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

// received forgets a message whose final receipt has come.
func (h *receiptQueries) received(reference string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, reference)
}

// run asks for one message after the other, at its pace and where submits leave room, until ctx
// ends. However fast the SMSC answers, an hour without receipts is not asked for within a moment.
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

// next takes the message that is due, or says how long there is none.
func (h *receiptQueries) next(now time.Time) (m awaitedReceipt, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.unslotted; held != nil {
		h.unslotted = nil
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

// ask asks once. What has no end yet, or was not taken, is asked for again later; what found no
// room comes next.
func (h *receiptQueries) ask(ctx context.Context, m awaitedReceipt) {
	r, err := h.query(ctx, m.reference, m.source)
	if errors.Is(err, errNoSlot) {
		h.mu.Lock()
		h.unslotted = &m
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

// askLater asks once more later, unless that was often enough.
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
