package statushook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// Times of the membership in a consumer group. Lanes use a shorter heartbeat interval.
const (
	heartbeatInterval = time.Second
	sessionTimeout    = 10 * time.Second
	commitInterval    = time.Second
	// shutdownTimeout bounds the last commit and leaving the group, together.
	shutdownTimeout = 3 * time.Second
	// slowAfter is how long deliveries may delay a rebalance, or the end of the webhook. Most calls
	// that are under way end within it. A call that is broken off is repeated.
	slowAfter = time.Second
)

// mostAhead bounds the events that are kept: those that are not delivered yet, and those delivered
// after them in their partitions. The latter come again after a restart, because Kafka remembers
// only how far a partition was read. Events that the webhook does not want are not kept.
const mostAhead = 1000

// mostAlone is how many events a sound receiver may fail at. If it fails at more, the receiver is
// at fault.
const mostAlone = 10

// reader reads the topic for one webhook and delivers the events. Each delivery sends every event
// that is due once. An event that is not taken delays the later events of its message; others are
// read and delivered meanwhile, up to mostAhead.
//
// A partition is not revoked while its events are being delivered, so two processes never deliver
// events of one message at the same time. A waiting rebalance ends the delivery after slowAfter,
// and so does the end of the webhook; events that were not delivered are delivered the next time,
// here or in another process.
type reader struct {
	hook   *hook
	client *kgo.Client

	mu      sync.Mutex
	pending []*event // guarded by mu: not marked for commit, in the order of each partition
	endSoon func()   // guarded by mu: ends the running delivery, after slowAfter
}

func newReader(cfg *Config, h *hook) (*reader, error) {
	r := &reader{hook: h, endSoon: func() {}}
	var err error
	r.client, err = kgo.NewClient(append([]kgo.Opt{
		kgo.ClientID("dispatcher.webhook." + h.Name),
		kgo.ConsumerGroup(Group(cfg.Group, h.Name)),
		kgo.ConsumeTopics(cfg.Topic),
		// A new webhook begins at the start of the topic, and so sends the events younger than its
		// MaxAge. Beginning at the end, or at a time, would lose what is published between the
		// lookup of the offset and the first fetch.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.HeartbeatInterval(heartbeatInterval),
		kgo.SessionTimeout(sessionTimeout),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsCallbackBlocked(r.rebalanceWaits),
		kgo.OnPartitionsRevoked(r.taken),
		kgo.OnPartitionsLost(r.taken),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(commitInterval),
	}, cfg.Client...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client of status webhook %s: %w", h.Name, err)
	}
	return r, nil
}

// run reads until ctx ends.
func (r *reader) run(ctx context.Context) {
	defer r.close()
	for ctx.Err() == nil {
		delivery, end := context.WithCancel(context.WithoutCancel(ctx))
		endSoon := func() { time.AfterFunc(slowAfter, end) }
		stop := context.AfterFunc(ctx, endSoon)
		r.mu.Lock()
		r.endSoon = endSoon
		r.mu.Unlock()
		r.deliver(delivery, r.poll(ctx))
		stop()
		end()
		r.client.AllowRebalance()
	}
}

// poll blocks rebalances. It adds new events to the pending ones, and returns all. While there are
// pending ones, it waits at most until one of them is due.
func (r *reader) poll(ctx context.Context) []*event {
	left, due, alone := r.left()
	room := min(mostAhead-len(left), batch)
	r.hook.full.Store(room <= 0 && alone)
	if len(left) > 0 {
		var end context.CancelFunc
		ctx, end = context.WithDeadline(ctx, due)
		defer end()
	}
	var fetches kgo.Fetches
	if room > 0 {
		fetches = r.client.PollRecords(ctx, room)
	} else {
		<-ctx.Done()
	}
	fetches.EachError(func(_ string, _ int32, err error) {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			r.hook.tell(zerolog.WarnLevel, err, "the status topic cannot be read for a webhook; "+
				"trying again")
		}
	})
	if len(left) > 0 && fetches.NumRecords() == 0 {
		// A poll whose context has ended waits for a running rebalance, blocks the next one, and returns
		// no records. The poll above may have blocked it already; to block twice does no harm.
		ended, end := context.WithCancel(ctx)
		end()
		r.client.PollRecords(ended, 1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fetches.EachRecord(r.add)
	return r.pending
}

// add keeps an event that the webhook wants, and marks any other for commit with the event before
// it in its partition; mu is held.
func (r *reader) add(record *kgo.Record) {
	if r.hook.wants(record.Value) {
		r.pending = append(r.pending, &event{Record: record, upTo: record})
		return
	}
	for _, e := range slices.Backward(r.pending) {
		if e.Partition == record.Partition {
			e.upTo = record
			return
		}
	}
	r.client.MarkCommitRecords(record)
}

// left are the pending events, and when the first of them is due. Only the first event of a message
// can be due. alone says that these are few, and that the receiver has failed at each of them only.
func (r *reader) left() (left []*event, due time.Time, alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, chains := true, chains(r.pending)
	alone = len(chains) <= mostAlone
	for _, chain := range chains {
		if at := chain[0].next; first || at.Before(due) {
			first, due = false, at
		}
		alone = alone && !chain[0].alone.IsZero()
	}
	return r.pending, due, alone
}

// chains are the events that are not done, by message.
func chains(events []*event) map[string][]*event {
	all := map[string][]*event{}
	for _, e := range events {
		key := string(e.Key)
		if key == "" { // no message: keep the order of the partition
			key = fmt.Sprintf("\x00%d", e.Partition)
		}
		if !e.done {
			all[key] = append(all[key], e)
		}
	}
	return all
}

// taken drops the pending events of revoked partitions.
func (r *reader) taken(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = slices.DeleteFunc(slices.Clone(r.pending), func(e *event) bool {
		revoked := slices.Contains(partitions[e.Topic], e.Partition)
		if revoked {
			e.finish()
		}
		return revoked
	})
}

// rebalanceWaits ends the delivery, because the next rebalance waits for it.
func (r *reader) rebalanceWaits(context.Context, *kgo.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endSoon()
}

// deliver sends the events that are due: different messages concurrently, the events of one message
// in order. It marks each partition for commit up to the first event that was not delivered, and
// keeps the rest.
func (r *reader) deliver(ctx context.Context, events []*event) {
	var calls errgroup.Group
	calls.SetLimit(connections)
	for _, chain := range chains(events) {
		calls.Go(func() error {
			for _, e := range chain {
				if time.Now().Before(e.next) {
					return nil
				}
				if r.hook.try(ctx, e); !e.done {
					return nil
				}
			}
			return nil
		})
	}
	_ = calls.Wait() // returns no error
	var left []*event
	stopped := map[int32]bool{} // partitions with an event that was not delivered
	for _, e := range events {
		if stopped[e.Partition] = stopped[e.Partition] || !e.done; stopped[e.Partition] {
			left = append(left, e)
			continue
		}
		r.client.MarkCommitRecords(e.upTo)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = left
}

// close commits what was delivered and leaves the group, within a bounded time.
func (r *reader) close() {
	ctx, stop := context.WithTimeout(context.Background(), shutdownTimeout)
	defer stop()
	r.client.AllowRebalance()
	_ = r.client.CommitMarkedOffsets(ctx) // if it fails, they are delivered again
	_ = r.client.LeaveGroupContext(ctx)   // if it fails, the session timeout removes the member
	r.client.CloseAllowingRebalance()
	for _, e := range r.pending {
		e.finish()
	}
	r.hook.client.CloseIdleConnections()
}
