package receive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/tracing"
	"dispatcher/ledger"
	"dispatcher/provider"
)

const (
	// batchSize is how many receipts are recorded at once.
	batchSize = 500
	// maxQueued bounds the receipts that wait to be recorded. More are refused, and their providers
	// send them again.
	maxQueued = 20_000
	// maxKept is how many more may wait if nobody would send them again.
	maxKept = 10_000
	// gather is how long the first receipt of a batch waits for others. It is short because providers
	// wait for the answer: they call over few connections, and SMSCs have small windows. While one
	// batch is being recorded, the next one fills up anyway.
	gather = 5 * time.Millisecond
	// shutdownTimeout bounds the last write when the process ends.
	shutdownTimeout = 2 * time.Second
)

// errFull means that more receipts arrive than the database can store.
var errFull = errors.New("more receipts arrive than the database takes; providers are asked to " +
	"send theirs again")

// errLate is reported when receipts have waited too long for the database.
var errLate = errors.New("receipts could not be recorded in time; their providers are asked to " +
	"send them again")

// errEnded is the error of Record after the end of Run.
var errEnded = errors.New("receipts are not taken any more, because this process ends")

// errRefused is reported for a receipt that the ledger cannot store.
var errRefused = errors.New("a receipt could not be recorded and is left out")

// Store stores receipts. *ledger.Receipts is one; see its methods.
type Store interface {
	Receive(ctx context.Context, receipts []ledger.Receipt, tell ledger.Tell) (ledger.Received,
		error)
	Overdue(ctx context.Context, limit int, tell ledger.Tell) (ledger.Swept, error)
	Drop(ctx context.Context, older time.Duration) (dropped int64, err error)
}

var _ Store = (*ledger.Receipts)(nil)

// Config is what a Batcher needs.
type Config struct {
	Store Store
	// Open returns the attempt that a receipt's key (provider.Submission.Key) was given to. It is
	// false for a key that is not ours. nil opens no keys.
	Open func(key string) (seq int64, attempt int, ok bool)
	// Freed is called with about how many active slots have become free.
	Freed func(slots int)
	// Trouble is called with errors; the batcher goes on.
	Trouble  func(where string, err error)
	Registry prometheus.Registerer
	// Tracer traces the receipts of messages that are traced; nil traces none.
	Tracer *tracing.Tracer
}

// Validate returns an error if a required field is missing.
func (c *Config) Validate() error {
	if c.Store == nil || c.Freed == nil || c.Trouble == nil || c.Registry == nil {
		return errors.New("receive: Store, Freed, Trouble and Registry are needed")
	}
	return nil
}

// Batcher takes the receipts of all channels and records them.
type Batcher struct {
	cfg     Config
	metrics *batcherMetrics
	wake    chan struct{} // capacity 1: a first receipt or a full batch waits

	mu      sync.Mutex
	queue   []*entry  // guarded by mu
	due     time.Time // guarded by mu; when the queue is recorded even if no batch is full
	writing []*entry  // guarded by mu; the batch that is being recorded
	ended   bool      // guarded by mu; receipts are refused
}

// New returns a Batcher. It records nothing before Run.
func New(cfg Config) (*Batcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Batcher{cfg: cfg, metrics: newBatcherMetrics(cfg.Registry), wake: make(chan struct{},
		1)}, nil
}

// Take records a receipt of a channel and then calls answer once, from any goroutine: with true
// when the receipt is durable; with false when the provider has to send it again, because the queue
// is full, it could not be recorded within answerTimeout, or the process ends. Take does not block,
// and answer must not. Any goroutine may call Take. If the process dies first, there is no answer,
// and the provider sends the receipt again. A receipt that names no message, or has a key that is
// not ours, is counted and answered with true, and changes nothing.
func (b *Batcher) Take(channel string, r provider.Receipt, answer func(taken bool)) {
	e, named := b.entry(channel, &r)
	if !named {
		answer(true)
		return
	}
	e.answer, e.until = answer, time.Now().Add(answerTimeout)
	if b.add(e) != nil {
		e.tell(false)
	}
}

// Keep records a receipt that nobody would send again. It is kept in memory until it is recorded,
// however long the database is away. It is lost when the process ends first, or when too many are
// kept already, which is reported to Trouble. It does not block, and any goroutine may call it.
func (b *Batcher) Keep(channel string, r provider.Receipt) {
	e, named := b.entry(channel, &r)
	if !named {
		return
	}
	e.answer = func(bool) {}
	if err := b.enqueue(maxQueued+maxKept, e); err != nil {
		b.metrics.received(channel, "lost")
		b.cfg.Trouble("receipts", fmt.Errorf("a late answer of channel %s is lost, and its "+
			"message stays unknown: %w", channel, err))
		return
	}
	b.metrics.received(channel, e.receipt.State.String())
}

// Record returns nil once receipts of a channel are durable. An error is that of ctx, or says that
// the queue is full or the process ends. Some of the receipts may be recorded nevertheless;
// recording them again does no harm. Receipts of many callers are recorded together.
func (b *Batcher) Record(ctx context.Context, channel string, receipts []provider.Receipt) error {
	entries := make([]*entry, 0, len(receipts))
	c := &caller{done: make(chan struct{})}
	for i := range receipts {
		if e, named := b.entry(channel, &receipts[i]); named {
			e.answer = c.answer
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	c.left.Store(int32(len(entries))) //nolint:gosec // A callback has a bounded size.
	if err := b.add(entries...); err != nil {
		return err
	}
	select {
	case <-c.done:
		if c.failed.Load() {
			return errEnded
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// entry converts a receipt for the ledger. named is false when nothing says which message it is
// about.
func (b *Batcher) entry(channel string, r *provider.Receipt) (e *entry, named bool) {
	e = new(entry)
	e.receipt = ledger.Receipt{
		Channel: channel, Reference: r.Reference, State: r.State,
		Cause: r.Cause, Code: r.Code, At: r.At,
	}
	if r.Key != "" && b.cfg.Open != nil {
		if seq, attempt, ok := b.cfg.Open(r.Key); ok {
			e.receipt.Seq, e.receipt.Attempt = seq, attempt
		}
	}
	if e.receipt.Reference == "" && e.receipt.Seq == 0 {
		b.metrics.received(channel, "nameless")
		return e, false
	}
	return e, true
}

// add queues entries of one channel: all of them, or none if the queue is too full.
func (b *Batcher) add(entries ...*entry) error {
	if err := b.enqueue(maxQueued, entries...); err != nil {
		b.metrics.received(entries[0].receipt.Channel, "refused")
		b.cfg.Trouble("receipts", err)
		return err
	}
	for _, e := range entries {
		b.metrics.received(e.receipt.Channel, e.receipt.State.String())
	}
	return nil
}

// enqueue queues entries unless the queue would be longer than most.
func (b *Batcher) enqueue(most int, entries ...*entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.queue)
	switch {
	case b.ended:
		return errEnded
	case before+len(entries) > most:
		return errFull
	case before == 0:
		b.due = time.Now().Add(gather)
	}
	b.queue = append(b.queue, entries...)
	if before == 0 || before < batchSize && len(b.queue) >= batchSize {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	return nil
}
