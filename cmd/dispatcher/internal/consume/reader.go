package consume

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/outage"
)

const (
	// pauseCheck is how soon a lane that was paused is read again.
	pauseCheck = 100 * time.Millisecond
	// grace is how long a rebalance waits for a Handle under way before it ends it.
	// Handle usually takes milliseconds; it blocks while there is no room for more.
	grace = 300 * time.Millisecond
	// farewell bounds the last commit, and again the leaving of the group.
	farewell = 3 * time.Second
)

// reader is the poll loop of one lane.
//
// The client's gate orders it with rebalances: PollRecords closes the gate, so that no
// partition is taken away while its records are in hand, and AllowRebalance opens it. A
// member that keeps it closed holds up the whole group, lanes and processes that have
// nothing to do with it. Therefore a rebalance that waits ends the turn's Handle; what was
// not handled stays pending for the next turn, less the partitions that were taken away.
type reader struct {
	cfg    Config
	lane   string
	client *kgo.Client
	cancel context.CancelFunc // ends every request of the client
	probe  *outage.Probe      // finds out what a failure is due to
	fenced atomic.Bool        // another process has taken the membership over

	mu      sync.Mutex         // the client calls back from goroutines of its own
	pending batch              // guarded by mu, though the gate orders its users anyway
	endTurn context.CancelFunc // guarded by mu; ends the Handle under way
}

func newReader(cfg Config, lane Lane) (*reader, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reader{cfg: cfg, lane: lane.Name, cancel: cancel, endTurn: func() {}}
	r.probe = &outage.Probe{Log: cfg.Outages, Reporter: "lane " + lane.Name, Timeout: watchTimeout, Again: watchAgain, Idle: watchEvery}
	options := append(cfg.options(lane),
		kgo.WithHooks(r),
		kgo.WithContext(ctx),
		kgo.OnPartitionsCallbackBlocked(r.rebalanceWaits),
		kgo.OnPartitionsRevoked(r.revoked),
		kgo.OnPartitionsLost(r.lost),
		kgo.AutoCommitCallback(r.committed),
	)
	var err error
	if r.client, err = kgo.NewClient(options...); err != nil {
		cancel()
		return nil, err
	}
	return r, nil
}

// run takes turns until ctx ends or Handle fails.
func (r *reader) run(ctx context.Context) error {
	for r.waitWhilePaused(ctx) {
		if r.fenced.Load() {
			return errFenced
		}
		if err := r.turn(ctx); err != nil {
			// Nothing may be read after records that were not handled: to mark a later
			// one would commit past them.
			return err
		}
		r.client.AllowRebalance()
	}
	return ctx.Err()
}

// waitWhilePaused reports whether the lane may be read; false means that ctx has ended.
// A lane that is not polled stays in the group, and what its client has buffered stays there.
func (r *reader) waitWhilePaused(ctx context.Context) bool {
	for r.cfg.Paused(r.lane) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pauseCheck):
		}
	}
	return ctx.Err() == nil
}

// turn polls and hands over. It leaves the gate closed.
func (r *reader) turn(ctx context.Context) error {
	turn, end := context.WithCancel(ctx)
	defer end()
	r.mu.Lock()
	r.endTurn = end
	r.mu.Unlock()

	work := r.poll(ctx)
	if ctx.Err() != nil || len(work.jobs) == 0 {
		return ctx.Err()
	}
	err := r.cfg.Handle(turn, work.jobs)
	switch {
	case err == nil:
		r.client.MarkCommitRecords(work.last...)
		r.keep(batch{})
	case ctx.Err() == nil && turn.Err() != nil: // a rebalance ended the turn
	default:
		return fmt.Errorf("handle %d records of lane %s: %w", len(work.jobs), r.lane, err)
	}
	return nil
}

// poll closes the gate and returns what is to be handled: what the last turn left, or
// else new records, for which it waits.
func (r *reader) poll(ctx context.Context) batch {
	if r.left().jobs != nil {
		// A poll whose context has ended waits for the rebalance that goes on, closes
		// the gate and returns no records.
		ended, end := context.WithCancel(ctx)
		end()
		r.client.PollRecords(ended, 1)
	}
	if work := r.left(); work.jobs != nil {
		return work
	}
	fetches := r.client.PollRecords(ctx, r.cfg.Batch)
	r.tell(fetches)
	work := newBatch(r.lane, fetches, &r.cfg)
	r.keep(work)
	return work
}

func (r *reader) left() batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending
}

func (r *reader) keep(b batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = b
}

// rebalanceWaits is called when a rebalance finds the gate closed.
func (r *reader) rebalanceWaits(context.Context, *kgo.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	time.AfterFunc(grace, r.endTurn)
}

// revoked is called, with the gate open, when partitions pass to another member. What
// is durable of them is committed first, so that the other does not read it again. At the
// stop it is called with all partitions.
func (r *reader) revoked(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
	ctx, stop := context.WithTimeout(ctx, farewell)
	defer stop()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		r.suspect(err, "offsets not committed before a rebalance; records will be read again, which the ledger notices")
	}
	r.keep(r.left().without(partitions))
}

// lost is called when this member was thrown out of the group or lost its coordinator.
// The client forgets all positions and goes on from the committed offsets.
func (r *reader) lost(context.Context, *kgo.Client, map[string][]int32) {
	r.keep(batch{})
}

// tell reports what went wrong on the way to the brokers; the client goes on by itself.
func (r *reader) tell(fetches kgo.Fetches) {
	fetches.EachError(func(topic string, partition int32, err error) {
		if !errors.Is(err, context.Canceled) {
			r.suspect(fmt.Errorf("%s/%d: %w", topic, partition, err), "cannot read from Kafka; trying again: check that its brokers are well and may be reached by their advertised names")
		}
	})
}

// suspect reports a failure: it is due to an outage, or told by itself when it stays.
func (r *reader) suspect(err error, sentence string) {
	r.probe.Suspect(outage.Report{What: "lane " + r.lane, Reporter: "lane " + r.lane, Err: err, Sentence: sentence})
}
