package app

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

const (
	// receiptBatch is how many receipts the ledger gets to see at once.
	receiptBatch = 500
	// maxReceipts bounds the receipts that wait for one look. More are not taken, and their
	// providers send them again.
	maxReceipts = 20_000
	// lastReceipts bounds what is tried at the end with the receipts that still wait. The slots of
	// those that are lost come free when their hold is over.
	lastReceipts = 2 * time.Second
)

// receiptPauses are the pauses before each look for the attempt that a receipt is about. Before the
// first, receipts gather. The others are for a receipt that is quicker than the settlement of its
// own submit; after the last, the end of the hold frees the slot.
var receiptPauses = [...]time.Duration{50 * time.Millisecond, 250 * time.Millisecond, 2 * time.Second, 15 * time.Second}

// Troubles of a process with its receipts.
var (
	errReceiptsFull    = errors.New("more receipts arrive than the database takes; their providers are asked to send them again")
	errReceiptsUnknown = errors.New("more receipts name submits that are not known than can be kept; a slot that waits for one comes free when its hold is over")
)

// slots gives back the active slots of messages whose receipt has come, and names the references of
// attempts that hold or held one. *ledger.Ledger does.
type slots interface {
	ReleaseByReceipt(ctx context.Context, channel string, references []string) (matched []string, err error)
}

var _ slots = (*ledger.Ledger)(nil)

// receipts takes the receipts of all channels whose slots are kept until then, and gives the slots
// back in batches. A receipt that it took is lost with the process; the slot then comes free at the end of its hold.
type receipts struct {
	slots   slots
	freed   func(slots int) // hears that about so many slots have come free
	trouble func(where string, err error)
	metrics *receiptMetrics
	wake    chan struct{} // capacity 1: a first receipt or a full batch waits

	mu    sync.Mutex
	queue [len(receiptPauses)][]heldReceipt // guarded by mu; of each look, in the order of due
}

// heldReceipt is a final receipt that waits for a look.
type heldReceipt struct {
	channel, reference string
	due                time.Time
}

func newReceipts(s slots, freed func(slots int), metrics *receiptMetrics, trouble func(where string, err error)) *receipts {
	return &receipts{slots: s, freed: freed, trouble: trouble, metrics: metrics, wake: make(chan struct{}, 1)}
}

// take reports whether a receipt is in good hands: false asks for it again. It does not block.
func (r *receipts) take(channel string, receipt provider.Receipt) bool {
	if !receipt.State.Final() {
		r.metrics.count(channel, receipt.State.String())
		return true // it frees nothing
	}
	if r.add(0, []heldReceipt{{channel: channel, reference: receipt.Reference, due: time.Now().Add(receiptPauses[0])}}) == 0 {
		r.metrics.count(channel, "refused")
		r.trouble("receipts", errReceiptsFull)
		return false
	}
	r.metrics.count(channel, receipt.State.String())
	return true
}

// add puts the first of receipts into the queue of a look, as many as there is room for.
func (r *receipts) add(look int, more []heldReceipt) (added int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.queue[look])
	more = more[:min(len(more), maxReceipts-before)]
	r.queue[look] = append(r.queue[look], more...)
	if before == 0 || before < receiptBatch && before+len(more) >= receiptBatch {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	return len(more)
}

// run gives slots back until ctx ends, and then what can be given back at once.
func (r *receipts) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		look, batch, wait := r.next(time.Now())
		if len(batch) > 0 {
			r.release(ctx, look, batch)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-timer.C:
		}
	}
	r.finish(context.WithoutCancel(ctx))
}

// next takes the next batch from the queue of the first look that is due, or says how long none is. A
// batch of a later look may be a little early, so that there are fewer of them.
func (r *receipts) next(now time.Time) (look int, batch []heldReceipt, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait = time.Hour
	for look := range r.queue {
		queue := r.queue[look]
		if len(queue) == 0 {
			continue
		}
		if left := queue[0].due.Sub(now); left > 0 && (look > 0 || len(queue) < receiptBatch) {
			wait = min(wait, left)
			continue
		}
		n, ahead := 1, now.Add(receiptPauses[look]/2)
		for n < min(len(queue), receiptBatch) && (look == 0 || !queue[n].due.After(ahead)) {
			n++
		}
		return look, r.cut(look, n), 0
	}
	return 0, nil, wait
}

// cut takes the first n receipts of a queue; mu is held.
func (r *receipts) cut(look, n int) []heldReceipt {
	batch := slices.Clone(r.queue[look][:n])
	r.queue[look] = slices.Delete(r.queue[look], 0, n)
	return batch
}

// release gives the slots of a batch back, however long the database is away. Receipts whose attempt was not
// found get another look.
func (r *receipts) release(ctx context.Context, look int, batch []heldReceipt) {
	for channel, references := range byChannel(batch) {
		matched, err := r.patiently(ctx, channel, references)
		if len(matched) > 0 {
			r.freed(len(matched))
		}
		switch {
		case ctx.Err() != nil && err != nil:
			r.again(look, channel, references) // finish has the last word
		case look+1 < len(receiptPauses):
			r.again(look+1, channel, without(references, matched))
		}
	}
}

// without returns those of references that are not among matched.
func without(references, matched []string) []string {
	known := make(map[string]bool, len(matched))
	for _, reference := range matched {
		known[reference] = true
	}
	return slices.DeleteFunc(references, func(reference string) bool { return known[reference] })
}

// again gives receipts another look. When too many wait for it, the end of their hold frees the slots of some.
func (r *receipts) again(look int, channel string, references []string) {
	if len(references) == 0 {
		return
	}
	due := time.Now().Add(receiptPauses[look])
	held := make([]heldReceipt, len(references))
	for i, reference := range references {
		held[i] = heldReceipt{channel, reference, due}
	}
	if r.add(look, held) < len(held) {
		r.trouble("receipts", errReceiptsUnknown)
	}
}

// patiently returns the references whose attempt was found. It ends with an error only when that is one that waiting
// does not mend, or when ctx has ended.
func (r *receipts) patiently(ctx context.Context, channel string, references []string) (matched []string, err error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		matched, err := r.slots.ReleaseByReceipt(ctx, channel, references)
		if err == nil {
			return matched, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		r.trouble("receipts", err)
		if !ledger.Unavailable(err) {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// finish tries once to give back the slots of whatever still waits.
func (r *receipts) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastReceipts)
	defer cancel()
	r.mu.Lock()
	rest := slices.Concat(r.queue[:]...)
	r.queue = [len(receiptPauses)][]heldReceipt{}
	r.mu.Unlock()
	for batch := range slices.Chunk(rest, receiptBatch) {
		for channel, references := range byChannel(batch) {
			if _, err := r.slots.ReleaseByReceipt(ctx, channel, references); err != nil {
				r.trouble("receipts", err)
				return
			}
		}
	}
}

// byChannel are the references of a batch, each once.
func byChannel(batch []heldReceipt) map[string][]string {
	groups := map[string][]string{}
	for _, h := range batch {
		groups[h.channel] = append(groups[h.channel], h.reference)
	}
	for channel, references := range groups {
		slices.Sort(references)
		groups[channel] = slices.Compact(references)
	}
	return groups
}
