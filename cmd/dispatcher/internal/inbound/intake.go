package inbound

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/ledger"
	"dispatcher/provider"
)

const (
	// maxBatch is how many messages one transaction books.
	maxBatch = 500
	// maxWaiting bounds the messages that wait for that.
	maxWaiting = 5000
	// takeTimeout is how long Take waits for the database.
	takeTimeout = 2 * time.Second
	// bookTimeout bounds one booking with its repetitions. Over a new connection it takes four
	// round trips: a shorter bound would cut each connection to a database a second away before it
	// is of use.
	bookTimeout = 10 * time.Second
	// forgetTimeout bounds what tidies up.
	forgetTimeout = 15 * time.Second
	// firstPause and longestPause are those before a booking that failed is tried again.
	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
	// awayPause is how long nothing is taken after a booking failed for good.
	awayPause = time.Second
	// partTimeout is how long a part waits for the others of its message.
	partTimeout = 10 * time.Minute
	// partsEvery is how often parts are looked for that have waited so long, and forgetEvery how
	// often what need not be remembered any more is dropped.
	partsEvery  = 15 * time.Second
	forgetEvery = 10 * time.Minute
)

// Why a message is not taken. Its provider keeps it and sends it again.
var (
	errClosed = errors.New("inbound messages are not taken any more, because this process ends")
	errAway   = errors.New("inbound messages are not taken while the database is away")
	errFull   = errors.New("more inbound messages arrive than the database takes")
)

// Store books messages of subscribers; see *ledger.Inbox, which does.
type Store interface {
	Book(ctx context.Context, in []ledger.Inbound,
		react func(*ledger.Subscribed) ledger.Reaction) (ledger.Booked, error)
	BookIncomplete(ctx context.Context, after time.Duration, limit int,
		react func(*ledger.Subscribed) ledger.Reaction) (ledger.Booked, error)
	Forget(ctx context.Context) (dropped int64, err error)
}

var _ Store = (*ledger.Inbox)(nil)

// Config is what an Intake needs.
type Config struct {
	Store Store
	// Directory returns the one of the routing in force; never nil. It must not block.
	Directory func() *Directory
	// E164 brings the number of a subscriber into the form that recipients have, or leaves it as it
	// is.
	E164     func(number string) string
	Registry prometheus.Registerer
	// Trouble is called for every booking that failed.
	Trouble func(where string, err error)
}

// Validate reports the first field that is missing.
func (c *Config) Validate() error {
	if c.Store == nil || c.Directory == nil || c.E164 == nil || c.Registry == nil ||
		c.Trouble == nil {
		return errors.New("inbound: Store, Directory, E164, Registry and Trouble are required")
	}
	return nil
}

// Intake takes messages from all channels and books them in the order in which they came. It is
// safe for concurrent use. Nothing is booked before Run, and nothing taken after it.
type Intake struct {
	cfg     Config
	queue   *queue
	metrics *metrics
	starts  arrivals // of messages that would take their sender off a list
}

// New returns an Intake. Run must be called.
func New(cfg Config) (*Intake, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Intake{cfg: cfg, queue: newQueue(), metrics: newMetrics(cfg.Registry)}, nil
}

// Take is Book for one message and an adapter that has no context: it waits for the database for
// two seconds at most, usually for some milliseconds, and while the database is known to be away
// not at all. Not taken asks the provider to send the message again.
func (i *Intake) Take(channel string, in provider.Inbound) (taken bool) {
	ctx, cancel := context.WithTimeout(context.Background(), takeTimeout)
	defer cancel()
	return i.Book(ctx, channel, []provider.Inbound{in}) == nil
}

// Book returns nil once all of the messages are durable. After an error the provider has to send
// them again: what was booked all the same is known again by its reference. When ctx ends, a
// booking that has begun is still waited for, at most a few seconds, because its outcome will be
// known then.
func (i *Intake) Book(ctx context.Context, channel string, in []provider.Inbound) error {
	for some := range slices.Chunk(in, maxBatch) {
		if err := i.book(ctx, channel, some); err != nil {
			i.metrics.refused(channel, len(some))
			return err
		}
		i.metrics.taken(channel, len(some))
	}
	return nil
}

// book has up to maxBatch messages booked in one transaction.
func (i *Intake) book(ctx context.Context, channel string, in []provider.Inbound) error {
	now := time.Now()
	e := &entry{in: make([]ledger.Inbound, len(in)), done: make(chan error, 1)}
	for k := range in {
		e.in[k] = newInbound(channel, &in[k], i.cfg.E164, now)
		i.starts.date(&e.in[k])
	}
	err := i.await(ctx, e, now)
	i.remember(e.in, err == nil)
	return err
}

// remember notes which of those who want to be taken off a list could not be booked.
func (i *Intake) remember(in []ledger.Inbound, booked bool) {
	directory := i.cfg.Directory()
	for k := range in {
		switch m := &in[k]; {
		case booked:
			i.starts.booked(m)
		case directory.starts(m):
			i.starts.refused(m)
		}
	}
}

// await queues an entry and waits until it is booked.
func (i *Intake) await(ctx context.Context, e *entry, now time.Time) error {
	if err := i.queue.add(e, now); err != nil {
		return err
	}
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
		if i.queue.withdraw(e) {
			return ctx.Err()
		}
		return <-e.done
	}
}

// Run books until ctx ends, and then what still waits.
func (i *Intake) Run(ctx context.Context) {
	parts, forget := time.NewTicker(partsEvery), time.NewTicker(forgetEvery)
	defer parts.Stop()
	defer forget.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-i.queue.wake:
			i.bookAll(ctx)
		case <-parts.C:
			i.bookIncomplete(ctx)
		case <-forget.C:
			i.forget(ctx)
		}
	}
	i.queue.close()
	i.bookAll(ctx)
}
