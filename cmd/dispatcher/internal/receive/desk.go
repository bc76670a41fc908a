package receive

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/ledger"
	"dispatcher/provider"
)

const (
	// batchSize is how many receipts are booked at once.
	batchSize = 500
	// maxQueued bounds the receipts that wait to be booked. More are not taken, and their
	// providers send them again.
	maxQueued = 20_000
	// gather is how long the first of a batch waits for others.
	gather = 50 * time.Millisecond
	// gatherAwaited is the same when somebody waits for the booking: providers call over few connections, and
	// while one batch is being booked the next one gathers by itself.
	gatherAwaited = 5 * time.Millisecond
	// lastWords bounds what is tried at the end with receipts that still wait.
	lastWords = 2 * time.Second
)

// errFull is the trouble of a process that hears more than its database takes.
var errFull = errors.New("more receipts arrive than the database takes; their providers are asked to send them again")

// errRefused is the trouble with a receipt that the ledger cannot store.
var errRefused = errors.New("a receipt could not be booked and is left out")

// errContradictory is the trouble with receipts that cannot be true together with what is booked.
var errContradictory = errors.New("receipts contradict what is booked and change nothing; docs/receipts.md says how to find them")

// Books is where receipts are booked. *ledger.Ledger is one; see its methods.
type Books interface {
	Receive(ctx context.Context, receipts []ledger.Receipt, tell ledger.Tell) (ledger.Received, error)
	Overdue(ctx context.Context, limit int, tell ledger.Tell) (ledger.Swept, error)
	DropReceipts(ctx context.Context, older time.Duration) (dropped int64, err error)
}

var _ Books = (*ledger.Ledger)(nil)

// Config is what a desk works with.
type Config struct {
	Books Books
	// Open reads the key that a receipt carries, provider.Submission.Key: which attempt it was given to. It is false for
	// a key that is not ours. nil opens none.
	Open func(key string) (seq int64, attempt int, ok bool)
	// Freed hears that about so many active slots have come free.
	Freed func(slots int)
	// Trouble hears what goes wrong; the desk goes on.
	Trouble  func(where string, err error)
	Registry prometheus.Registerer
}

// Validate reports what is missing.
func (c *Config) Validate() error {
	if c.Books == nil || c.Freed == nil || c.Trouble == nil || c.Registry == nil {
		return errors.New("receive: Books, Freed, Trouble and Registry are needed")
	}
	return nil
}

// Desk takes the receipts of all channels and books them.
type Desk struct {
	cfg     Config
	metrics *deskMetrics
	wake    chan struct{} // capacity 1: a first receipt or a full batch waits

	mu    sync.Mutex
	queue []entry   // guarded by mu
	due   time.Time // guarded by mu; when they have waited for long enough
}

// entry is a receipt that waits to be booked.
type entry struct {
	receipt ledger.Receipt
	caller  *caller // nil when nobody waits for it
}

// caller waits for receipts to be booked.
type caller struct {
	left atomic.Int32
	done chan struct{} // closed with the last of them
}

// New returns a desk that books once Run is called.
func New(cfg Config) (*Desk, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Desk{cfg: cfg, metrics: newDeskMetrics(cfg.Registry), wake: make(chan struct{}, 1)}, nil
}

// Take reports whether a receipt of a channel is in good hands: false asks for it again. It never blocks, and any
// goroutine may call it. What was taken and not yet booked is lost with the process, which is some
// hundredths of a second's worth while the database is there; Book loses nothing. A receipt that names no message, or
// under a key that is not ours, is taken and counted, and changes nothing.
func (d *Desk) Take(channel string, r provider.Receipt) (taken bool) {
	e, named := d.entry(channel, &r)
	if !named {
		return true
	}
	return d.add(e)
}

// Book returns nil once receipts of a channel are durable. After an error, which is that of ctx or says that there is
// no room, some of them may be booked all the same: whoever calls again does no harm. Receipts of many callers are booked
// together.
func (d *Desk) Book(ctx context.Context, channel string, receipts []provider.Receipt) error {
	entries := make([]entry, 0, len(receipts))
	c := &caller{done: make(chan struct{})}
	for i := range receipts {
		if e, named := d.entry(channel, &receipts[i]); named {
			e.caller = c
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	c.left.Store(int32(len(entries))) //nolint:gosec // A callback has a bounded size.
	if !d.add(entries...) {
		return errFull
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// entry is a receipt as the ledger wants it; named is false when nothing says which message it is about.
func (d *Desk) entry(channel string, r *provider.Receipt) (e entry, named bool) {
	e.receipt = ledger.Receipt{Channel: channel, Reference: r.Reference, State: r.State, Cause: r.Cause, Code: r.Code, At: r.At}
	if r.Key != "" && d.cfg.Open != nil {
		if seq, attempt, ok := d.cfg.Open(r.Key); ok {
			e.receipt.Seq, e.receipt.Attempt = seq, attempt
		}
	}
	if e.receipt.Reference == "" && e.receipt.Seq == 0 {
		d.metrics.heard(channel, "nameless")
		return e, false
	}
	return e, true
}

// add queues entries of one channel if there is room for all of them.
func (d *Desk) add(entries ...entry) bool {
	if !d.enqueue(entries) {
		d.metrics.heard(entries[0].receipt.Channel, "refused")
		d.cfg.Trouble("receipts", errFull)
		return false
	}
	for i := range entries {
		d.metrics.heard(entries[i].receipt.Channel, entries[i].receipt.State.String())
	}
	return true
}

func (d *Desk) enqueue(entries []entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := len(d.queue)
	if before+len(entries) > maxQueued {
		return false
	}
	patience := gather
	if entries[0].caller != nil {
		patience = gatherAwaited
	}
	due := time.Now().Add(patience)
	sooner := before == 0 || due.Before(d.due)
	if sooner {
		d.due = due
	}
	d.queue = append(d.queue, entries...)
	if sooner || before < batchSize && len(d.queue) >= batchSize {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// Run books receipts and closes messages until ctx ends, and then books what can be booked at once.
func (d *Desk) Run(ctx context.Context) {
	var loops sync.WaitGroup
	early := make(chan struct{}, 1)
	loops.Go(func() { d.sweep(ctx, early) })
	loops.Go(func() { d.tidy(ctx) })
	d.book(ctx, early)
	loops.Wait()
	d.finish(context.WithoutCancel(ctx))
}

// book books batches as they fill up or have waited for long enough.
func (d *Desk) book(ctx context.Context, early chan<- struct{}) {
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
		if rest := d.patiently(ctx, batch, early); len(rest) > 0 {
			d.putBack(rest)
		}
	}
}

// next takes a batch from the queue, or says how long there is none to book.
func (d *Desk) next(now time.Time) (batch []entry, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		return nil, time.Hour
	}
	if left := d.due.Sub(now); left > 0 && len(d.queue) < batchSize {
		return nil, left
	}
	n := min(len(d.queue), batchSize)
	batch = slices.Clone(d.queue[:n])
	d.queue = slices.Delete(d.queue, 0, n)
	return batch, 0
}

// putBack returns receipts to the front of the queue; there may be more than there is room for then.
func (d *Desk) putBack(rest []entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = slices.Concat(rest, d.queue)
}

// patiently books a batch, however long the database is away, and returns what ctx did not leave time for. A receipt that the
// ledger refuses is left out rather than allowed to hold up the others.
func (d *Desk) patiently(ctx context.Context, batch []entry, early chan<- struct{}) (rest []entry) {
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
			release(batch) // it would be refused again
			return nil
		default:
			half := len(batch) / 2
			return append(d.patiently(ctx, batch[:half], early), d.patiently(ctx, batch[half:], early)...)
		}
	}
}

// try books a batch once.
func (d *Desk) try(ctx context.Context, batch []entry, early chan<- struct{}) error {
	receipts := make([]ledger.Receipt, len(batch))
	for i := range batch {
		receipts[i] = batch[i].receipt
	}
	var closed tally
	got, err := d.cfg.Books.Receive(ctx, receipts, closed.tell)
	if err != nil {
		return err
	}
	release(batch)
	d.metrics.booked(&got, &closed)
	d.contradicted(got.Contradictory)
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

// release tells those who wait that their receipts are done with.
func release(batch []entry) {
	for i := range batch {
		if c := batch[i].caller; c != nil && c.left.Add(-1) == 0 {
			close(c.done)
		}
	}
}

// finish tries once to book whatever still waits.
func (d *Desk) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	d.mu.Lock()
	rest := d.queue
	d.queue = nil
	d.mu.Unlock()
	for batch := range slices.Chunk(rest, batchSize) {
		if err := d.try(ctx, batch, nil); err != nil {
			d.cfg.Trouble("receipts", err)
			return
		}
	}
}
