package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dispatcher/cmd/dispatcher/internal/outage"
)

const (
	// maxCalls is how many calls of Handle a lane has at a time, at most. With a disk that takes ten
	// milliseconds for a commit, three carry a tenth more than two, and four no more than three.
	maxCalls = 3
	// pauseCheck is how often a paused lane asks whether it may be read again.
	pauseCheck = 100 * time.Millisecond
	// handleGrace is how long a rebalance waits for running calls of Handle before it ends them.
	// Handle usually takes milliseconds; it blocks while no slot is free.
	handleGrace = 300 * time.Millisecond
	// shutdownTimeout bounds the last commit. In a reader, the commit and leaving the group may
	// together take twice as long.
	shutdownTimeout = 3 * time.Second
)

// reader is the poll loop of one lane.
//
// The client's rebalance lock orders it with rebalances. PollRecords takes the lock, so that no
// partition is taken away while its records are being handled, and AllowRebalance releases it. A
// member that keeps the lock delays the rebalance of the whole group, in all processes. Therefore a
// waiting rebalance ends the running calls of Handle. Records that were not handled stay pending
// for the next call, except those of partitions that were taken away.
type reader struct {
	cfg    ConsumerConfig
	lane   string
	client *kgo.Client
	cancel context.CancelFunc // ends every request of the client
	probe  *outage.Probe      // finds the cause of a failure
	fenced atomic.Bool        // another process has taken the membership over

	mu        sync.Mutex         // the client calls back from its own goroutines
	pending   batch              // guarded by mu, though the rebalance lock orders its users anyway
	endHandle context.CancelFunc // guarded by mu; ends the running calls of Handle
	rebalance bool               // guarded by mu; one waits for the rebalance lock
}

func newReader(cfg ConsumerConfig, lane Lane) (*reader, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reader{cfg: cfg, lane: lane.Name, cancel: cancel, endHandle: func() {}}
	r.probe = &outage.Probe{
		Log: cfg.Outages, Reporter: r.reporter(),
		Timeout: watchTimeout, Again: watchAgain, Idle: watchEvery,
	}
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

// run handles records until ctx ends or Handle fails.
func (r *reader) run(ctx context.Context) error {
	for r.waitWhilePaused(ctx) {
		if r.fenced.Load() {
			return errFenced
		}
		if err := r.handleNext(ctx); err != nil {
			// After records that were not handled nothing may be read: marking a later record would commit
			// past them.
			return err
		}
		r.client.AllowRebalance()
	}
	return ctx.Err()
}

// waitWhilePaused reports whether the lane may be read; false means that ctx has ended.
// A lane that is not polled stays in the group, and its client keeps what it has buffered.
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

// handleNext polls and hands the records to Handle. While full batches are buffered, it hands over
// the next one as soon as the one before allows that, so that up to maxCalls are in work. It
// returns with the rebalance lock held and nothing in work.
func (r *reader) handleNext(ctx context.Context) error {
	handling, end := context.WithCancel(ctx)
	defer end()
	r.begin(end)
	work := r.poll(ctx)
	if ctx.Err() != nil || len(work.jobs) == 0 {
		return ctx.Err()
	}
	for calls := []*call{r.handOver(handling, work)}; len(calls) > 0; {
		calls = r.handOverMore(handling, calls)
		if err := calls[0].result(); err != nil {
			rebalance := ctx.Err() == nil && handling.Err() != nil // it ended Handle
			end()
			left := endAll(calls)
			if r.keep(left); !rebalance {
				return fmt.Errorf("handle %d records of lane %s: %w", len(left.jobs), r.lane, err)
			}
			return nil
		}
		r.client.MarkCommitRecords(calls[0].work.last...)
		calls = slices.Delete(calls, 0, 1)
	}
	r.keep(batch{})
	return nil
}

// handOverMore hands over full batches, each when the call before it allows that, until the first
// call has returned. None follows a call that got the records of ended calls. So those never become
// more than maxCalls batches.
func (r *reader) handOverMore(ctx context.Context, calls []*call) []*call {
	for len(calls) < maxCalls {
		last := calls[len(calls)-1]
		if len(last.work.jobs) > r.cfg.Batch || !last.allowsNext(calls[0]) ||
			!r.hasBatch(ctx) {
			break
		}
		work := r.read(dontWait)
		if len(work.jobs) == 0 {
			break
		}
		calls = append(calls, r.handOver(ctx, work))
	}
	return calls
}

// endAll waits until all calls have returned, and returns their records. Those of calls that
// succeeded are among them, because their offsets lie behind those of the first.
func endAll(calls []*call) (left batch) {
	for _, c := range calls {
		_ = c.result()
		left = left.and(c.work)
	}
	return left
}

// begin sets what a rebalance ends.
func (r *reader) begin(endHandle context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endHandle, r.rebalance = endHandle, false
}

// hasBatch reports whether a full batch is buffered and may be handed over now. A smaller one waits
// until those in work are done, because claims of few messages cost more per message.
func (r *reader) hasBatch(ctx context.Context) bool {
	r.mu.Lock()
	rebalance := r.rebalance
	r.mu.Unlock()
	return !rebalance && ctx.Err() == nil && !r.fenced.Load() && !r.cfg.Paused(r.lane) &&
		r.client.BufferedFetchRecords() >= int64(r.cfg.Batch)
}

// handOver starts a call of Handle.
func (r *reader) handOver(ctx context.Context, work batch) *call {
	c := &call{work: work, next: make(chan struct{}), ended: make(chan struct{})}
	go c.run(ctx, r.cfg.Handle)
	return c
}

// poll takes the rebalance lock and returns the records to handle: those left by the last Handle,
// or else new ones, for which it waits.
func (r *reader) poll(ctx context.Context) batch {
	if r.left().jobs != nil {
		// A poll whose context has ended waits for a running rebalance, takes the lock and returns no
		// records.
		ended, end := context.WithCancel(ctx)
		end()
		r.client.PollRecords(ended, 1)
		if work := r.left(); work.jobs != nil {
			return work
		}
		// The rebalance has taken them away. It goes on only without the lock, which the next poll
		// takes with the first new record.
		r.client.AllowRebalance()
	}
	return r.read(ctx)
}

// dontWait lets read return what is buffered. Records that were buffered a moment ago may be gone,
// when the leader of their partition has moved.
var dontWait context.Context

// read waits for new records and decodes them.
func (r *reader) read(ctx context.Context) batch {
	fetches := r.client.PollRecords(ctx, r.cfg.Batch)
	fetches.EachError(r.fetchFailed)
	return newBatch(r.lane, fetches, &r.cfg)
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

// rebalanceWaits is called when a rebalance finds the lock taken.
func (r *reader) rebalanceWaits(context.Context, *kgo.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rebalance = true
	time.AfterFunc(handleGrace, r.endHandle)
}

// revoked is called when partitions pass to another member, and with all partitions at the stop. It
// first commits the offsets of durable records, so that the other member does not read them again.
func (r *reader) revoked(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
	ctx, stop := context.WithTimeout(ctx, shutdownTimeout)
	defer stop()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		r.suspect(err, "offsets not committed before a rebalance; "+
			"records will be read again, which the ledger notices")
	}
	r.keep(r.left().without(partitions))
}

// lost is called when this member was thrown out of the group or lost its coordinator. The client
// drops all positions and continues from the committed offsets.
func (r *reader) lost(context.Context, *kgo.Client, map[string][]int32) {
	r.keep(batch{})
}

// committed gets the response to each periodic commit of the client. A refused commit is made again
// by the next tick, or by the next reader of the records.
func (r *reader) committed(
	_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error,
) {
	if err == nil {
		err = refusedCommit(answer)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		r.suspect(err, "offsets not committed; records may be read again, which the ledger "+
			"notices: check the group's rights and coordinator")
	}
}

// refusedCommit is the first error of a commit's partitions.
func refusedCommit(answer *kmsg.OffsetCommitResponse) error {
	for _, topic := range answer.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return fmt.Errorf("commit of %s/%d: %w", topic.Topic, partition.Partition, err)
			}
		}
	}
	return nil
}

// fetchFailed reports an error of a fetch; the client retries by itself.
func (r *reader) fetchFailed(topic string, partition int32, err error) {
	if !errors.Is(err, context.Canceled) {
		r.suspect(fmt.Errorf("%s/%d: %w", topic, partition, err),
			"cannot read from Kafka; trying again: check that its brokers are well and may be "+
				"reached by their advertised names")
	}
}

// suspect reports a failure. The probe checks whether an outage is the cause, and reports the
// failure itself when it is not and persists.
func (r *reader) suspect(err error, sentence string) {
	r.probe.Suspect(outage.Report{
		What: r.reporter(), Reporter: r.reporter(), Err: err, Sentence: sentence,
	})
}

// reporter is the name of the lane in reports of outages.
func (r *reader) reporter() string { return "lane " + r.lane }
