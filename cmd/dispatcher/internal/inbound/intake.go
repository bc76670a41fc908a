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
	// maxBatch is how many messages one transaction records.
	maxBatch = 500
	// maxWaiting bounds the messages that wait to be recorded.
	maxWaiting = 5000
	// takeTimeout is how long Take waits for the database.
	takeTimeout = 2 * time.Second
	// recordTimeout bounds one write with its repetitions. A write over a new connection takes four
	// round trips: with a round trip of a second, a shorter bound would end every try.
	recordTimeout = 10 * time.Second
	// forgetTimeout bounds the deletion of old data.
	forgetTimeout = 15 * time.Second
	// firstPause and longestPause bound the pauses before a failed write is repeated.
	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
	// awayPause is how long no message is taken after a write has failed for good.
	awayPause = time.Second
	// partTimeout is how long a part waits for the others of its message.
	partTimeout = 10 * time.Minute
	// partsEvery is how often messages with missing parts are searched, and forgetEvery how often
	// old data is deleted.
	partsEvery  = 15 * time.Second
	forgetEvery = 10 * time.Minute
)

// Errors of Record. The provider sends the message again.
var (
	errClosed = errors.New("inbound messages are not taken any more, because this process ends")
	errAway   = errors.New("inbound messages are not taken while the database is away")
	errFull   = errors.New("more inbound messages arrive than the database takes")
)

// Store stores messages of subscribers. *ledger.Inbox is one.
type Store interface {
	Record(ctx context.Context, in []ledger.Inbound,
		react func(*ledger.Subscribed) ledger.Reaction) (ledger.InboxResult, error)
	RecordIncomplete(ctx context.Context, after time.Duration, limit int,
		react func(*ledger.Subscribed) ledger.Reaction) (ledger.InboxResult, error)
	Forget(ctx context.Context) (dropped int64, err error)
}

var _ Store = (*ledger.Inbox)(nil)

// Config is what an Intake needs.
type Config struct {
	Store Store
	// Directory returns the Directory of the routing in force; never nil. It must not block.
	Directory func() *Directory
	// E164 converts the number of a subscriber to the form that recipients have, if it can.
	E164     func(number string) string
	Registry prometheus.Registerer
	// Trouble is called for every write that failed.
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

// Intake takes messages from all channels and records them in the order of arrival. It is safe for
// concurrent use. It records nothing before Run starts, and takes nothing after Run ends.
type Intake struct {
	cfg     Config
	queue   *queue
	metrics *metrics
	starts  arrivals // of messages that would take their sender off an opt-out list
}

// New returns an Intake. Run must be called.
func New(cfg Config) (*Intake, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Intake{cfg: cfg, queue: newQueue(), metrics: newMetrics(cfg.Registry)}, nil
}

// Take is Record for one message, for adapters that have no context. It waits at most takeTimeout,
// usually some milliseconds, and not at all while the database is known to be away. When taken is
// false, the provider has to send the message again.
func (i *Intake) Take(channel string, in provider.Inbound) (taken bool) {
	ctx, cancel := context.WithTimeout(context.Background(), takeTimeout)
	defer cancel()
	return i.Record(ctx, channel, []provider.Inbound{in}) == nil
}

// Record returns nil once all of the messages are durable. After an error the provider has to send
// them again; those that were recorded nevertheless are recognised by their reference. When ctx
// ends, Record still waits for a write that has begun, at most recordTimeout, to learn its outcome.
func (i *Intake) Record(ctx context.Context, channel string, in []provider.Inbound) error {
	for some := range slices.Chunk(in, maxBatch) {
		if err := i.queueAll(ctx, channel, some); err != nil {
			i.metrics.refused(channel, len(some))
			return err
		}
		i.metrics.taken(channel, len(some))
	}
	return nil
}

// queueAll queues up to maxBatch messages and waits until one transaction has recorded them.
func (i *Intake) queueAll(ctx context.Context, channel string, in []provider.Inbound) error {
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

// remember updates starts with the messages of a write.
func (i *Intake) remember(in []ledger.Inbound, recorded bool) {
	directory := i.cfg.Directory()
	for k := range in {
		switch m := &in[k]; {
		case recorded:
			i.starts.recorded(m)
		case directory.starts(m):
			i.starts.refused(m)
		}
	}
}

// await queues an entry and waits until it is recorded.
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

// Run records until ctx ends, and then the messages that are still queued.
func (i *Intake) Run(ctx context.Context) {
	parts, forget := time.NewTicker(partsEvery), time.NewTicker(forgetEvery)
	defer parts.Stop()
	defer forget.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-i.queue.wake:
			i.recordAll(ctx)
		case <-parts.C:
			i.recordIncomplete(ctx)
		case <-forget.C:
			i.forget(ctx)
		}
	}
	i.queue.close()
	i.recordAll(ctx)
}
