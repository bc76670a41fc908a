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
	// batchSize is how many receipts are booked at once.
	batchSize = 500
	// maxQueued bounds the receipts that wait to be booked. More are not taken, and their
	// providers send them again.
	maxQueued = 20_000
	// maxKept is how many more may wait of those that nobody sends again.
	maxKept = 10_000
	// gather is how long the first of a batch waits for others. It is short because somebody waits
	// for every booking: providers call over few connections, SMSCs have small windows, and while
	// one batch is being booked the next one gathers by itself.
	gather = 5 * time.Millisecond
	// shutdownTimeout bounds what is tried at the end with receipts that still wait.
	shutdownTimeout = 2 * time.Second
)

// errFull is the error when more receipts arrive than the database takes.
var errFull = errors.New("more receipts arrive than the database takes; providers are asked to " +
	"send theirs again")

// errLate is the trouble of one whose database has been away for a while.
var errLate = errors.New("receipts could not be booked in time; their providers are asked to " +
	"send " +
	"" +
	"them again")

// errEnded is why nothing is taken at the end.
var errEnded = errors.New("receipts are not taken any more, because this process ends")

// errRefused is the trouble with a receipt that the ledger cannot store.
var errRefused = errors.New("a receipt could not be booked and is left out")

// Store is where receipts are booked. *ledger.Receipts is one; see its methods.
type Store interface {
	Receive(ctx context.Context, receipts []ledger.Receipt, tell ledger.Tell) (ledger.Received,
		error)
	Overdue(ctx context.Context, limit int, tell ledger.Tell) (ledger.Swept, error)
	Drop(ctx context.Context, older time.Duration) (dropped int64, err error)
}

var _ Store = (*ledger.Receipts)(nil)

// Config is what a batcher works with.
type Config struct {
	Store Store
	// Open reads the key that a receipt carries, provider.Submission.Key: which attempt it was
	// given to. It is false for a key that is not ours. nil opens none.
	Open func(key string) (seq int64, attempt int, ok bool)
	// Freed is called when about so many active slots have become free.
	Freed func(slots int)
	// Trouble is called with what went wrong; the batcher goes on.
	Trouble  func(where string, err error)
	Registry prometheus.Registerer
	// Tracer records what receipts make of messages that are traced; nil records nothing.
	Tracer *tracing.Tracer
}

// Validate reports what is missing.
func (c *Config) Validate() error {
	if c.Store == nil || c.Freed == nil || c.Trouble == nil || c.Registry == nil {
		return errors.New("receive: Store, Freed, Trouble and Registry are needed")
	}
	return nil
}

// Batcher takes the receipts of all channels and books them.
type Batcher struct {
	cfg     Config
	metrics *batcherMetrics
	wake    chan struct{} // capacity 1: a first receipt or a full batch waits

	mu      sync.Mutex
	queue   []*entry  // guarded by mu
	due     time.Time // guarded by mu; when they have waited for long enough
	booking []*entry  // guarded by mu; the batch under way
	ended   bool      // guarded by mu; nothing is taken any more
}

// New returns a batcher that books once Run is called.
func New(cfg Config) (*Batcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Batcher{cfg: cfg, metrics: newBatcherMetrics(cfg.Registry), wake: make(chan struct{},
		1)}, nil
}

// Take calls answer once, from any goroutine: true when a receipt of a channel is durable, false
// when it has to be sent again because there is no room, it could not be booked within five
// seconds, or the process ends. Neither Take nor answer may block; any goroutine may call Take.
// What has no answer when the process dies is its provider's to send again. A receipt that names no
// message, or under a key that is not ours, is taken and counted, and changes nothing.
func (d *Batcher) Take(channel string, r provider.Receipt, answer func(taken bool)) {
	e, named := d.entry(channel, &r)
	if !named {
		answer(true)
		return
	}
	e.answer, e.until = answer, time.Now().Add(answerTimeout)
	if d.add(e) != nil {
		e.tell(false)
	}
}

// Keep takes a receipt that nobody sends again and keeps it until it is booked, however long the
// database is away. It is lost when the process ends before, or when too many are kept already,
// which is told. Any goroutine may call it, and it does not block.
func (d *Batcher) Keep(channel string, r provider.Receipt) {
	e, named := d.entry(channel, &r)
	if !named {
		return
	}
	e.answer = func(bool) {}
	if err := d.enqueue(maxQueued+maxKept, e); err != nil {
		d.metrics.heard(channel, "lost")
		d.cfg.Trouble("receipts", fmt.Errorf("a late answer of channel %s is lost, and its "+
			"message stays unknown: %w", channel, err))
		return
	}
	d.metrics.heard(channel, e.receipt.State.String())
}

// Book returns nil once receipts of a channel are durable. After an error, which is that of ctx or
// says that there is no room, some of them may be booked all the same: whoever calls again does no
// harm. Receipts of many callers are booked together.
func (d *Batcher) Book(ctx context.Context, channel string, receipts []provider.Receipt) error {
	entries := make([]*entry, 0, len(receipts))
	c := &caller{done: make(chan struct{})}
	for i := range receipts {
		if e, named := d.entry(channel, &receipts[i]); named {
			e.answer = c.answer
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	c.left.Store(int32(len(entries))) //nolint:gosec // A callback has a bounded size.
	if err := d.add(entries...); err != nil {
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

// entry is a receipt as the ledger wants it; named is false when nothing says which message it is
// about.
func (d *Batcher) entry(channel string, r *provider.Receipt) (e *entry, named bool) {
	e = new(entry)
	e.receipt = ledger.Receipt{
		Channel: channel, Reference: r.Reference, State: r.State,
		Cause: r.Cause, Code: r.Code, At: r.At,
	}
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
func (d *Batcher) add(entries ...*entry) error {
	if err := d.enqueue(maxQueued, entries...); err != nil {
		d.metrics.heard(entries[0].receipt.Channel, "refused")
		d.cfg.Trouble("receipts", err)
		return err
	}
	for _, e := range entries {
		d.metrics.heard(e.receipt.Channel, e.receipt.State.String())
	}
	return nil
}

// enqueue queues entries unless more than most would wait then.
func (d *Batcher) enqueue(most int, entries ...*entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := len(d.queue)
	switch {
	case d.ended:
		return errEnded
	case before+len(entries) > most:
		return errFull
	case before == 0:
		d.due = time.Now().Add(gather)
	}
	d.queue = append(d.queue, entries...)
	if before == 0 || before < batchSize && len(d.queue) >= batchSize {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
	return nil
}
