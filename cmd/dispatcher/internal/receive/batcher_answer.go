package receive

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"dispatcher/ledger"
)

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
