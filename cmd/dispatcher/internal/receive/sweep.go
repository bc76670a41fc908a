package receive

import (
	"context"
	"time"

	"dispatcher/ledger"
)

// firstPause and longestPause bound the pauses between tries to reach the database.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

const (
	// sweepInterval is the pause between two sweeps. One that finds nothing takes less than a
	// millisecond.
	sweepInterval = time.Second
	// quickInterval replaces it for quickFor after receipts that came before their settlement. They
	// become due with the settlement, and each may hold a slot until the sweep.
	quickInterval = 100 * time.Millisecond
	quickFor      = 10 * time.Second
	// sweepSize is how many parts of messages one sweep reads.
	sweepSize = 5000

	// tidyInterval is how often receipts without a message are deleted, keepEarly how long they are
	// kept.
	tidyInterval = 10 * time.Minute
	keepEarly    = 48 * time.Hour
)

// sweep closes what is due until ctx ends.
func (b *Batcher) sweep(ctx context.Context, early <-chan struct{}) {
	var quick time.Time
	timer := time.NewTimer(sweepInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-early:
			now := time.Now()
			if !now.Before(quick) {
				timer.Reset(quickInterval)
			}
			quick = now.Add(quickFor)
			continue
		case <-timer.C:
		}
		b.closeDue(ctx)
		if time.Now().Before(quick) {
			timer.Reset(quickInterval)
		} else {
			timer.Reset(sweepInterval)
		}
	}
}

// closeDue closes the messages that are due now. That frees the slots of attempts whose receipts
// came before their settlement.
func (b *Batcher) closeDue(ctx context.Context) {
	closed, began := stateCounts{traced: b.cfg.Tracer != nil}, time.Now()
	looking, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	swept, err := b.cfg.Store.Overdue(looking, sweepSize, closed.tell)
	if err != nil && ctx.Err() == nil {
		b.cfg.Trouble("receipts", err)
	}
	if err == nil {
		b.metrics.swept(&closed)
		b.trace(&closed, began)
	}
	b.metrics.odd(swept.Contradictory, swept.OtherID)
	b.logDiscrepancies(swept.Discrepancies)
	if swept.Closed > 0 {
		b.cfg.Freed(swept.Closed)
	}
}

// tidy deletes old receipts without a message, until ctx ends.
func (b *Batcher) tidy(ctx context.Context) {
	for ledger.Pause(ctx, tidyInterval) {
		if err := b.drop(ctx); err != nil && ctx.Err() == nil {
			b.cfg.Trouble("receipts", err)
		}
	}
}

func (b *Batcher) drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	_, err := b.cfg.Store.Drop(ctx, keepEarly)
	return err
}
