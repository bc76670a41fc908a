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

// Bounds of the membership in a group, as those of the lanes.
const (
	heartbeatInterval = time.Second
	sessionTimeout    = 10 * time.Second
	commitInterval    = time.Second
	// shutdownTimeout bounds the last commit, and again the leaving of the group.
	shutdownTimeout = 3 * time.Second
	// slowAfter is how long deliveries may hold up a rebalance.
	slowAfter = time.Second
)

// reader takes the events of one webhook from the topic.
//
// A partition is not given away while its events are being delivered, so two processes do not
// deliver those of one message at the same time. A rebalance that waits ends the deliveries that
// are under way; events that were not delivered stay for the next turn, here or elsewhere.
type reader struct {
	hook   *hook
	client *kgo.Client

	mu      sync.Mutex
	pending []*event           // guarded by mu: what is not marked yet, in order by partition
	endTurn context.CancelFunc // guarded by mu
}

// event is a record that was read.
type event struct {
	*kgo.Record
	done bool // delivered, or not to be
}

func newReader(cfg *Config, h *hook) (*reader, error) {
	r := &reader{hook: h, endTurn: func() {}}
	var err error
	r.client, err = kgo.NewClient(append([]kgo.Opt{
		kgo.ClientID("dispatcher.webhook." + h.Name),
		kgo.ConsumerGroup(Group(cfg.Group, h.Name)),
		kgo.ConsumeTopics(cfg.Topic),
		// A webhook that has committed nothing begins at the start, and so sends what is younger
		// than its MaxAge. Neither the end nor a time would do: what is published between the
		// question for the offset and the first fetch would be lost.
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
		turn, end := context.WithCancel(ctx)
		r.mu.Lock()
		r.endTurn = end
		r.mu.Unlock()
		r.deliver(turn, r.poll(ctx))
		end()
		r.client.AllowRebalance()
	}
}

// poll keeps rebalances away and returns what the last turn has left, or else new events, for which
// it waits.
func (r *reader) poll(ctx context.Context) []*event {
	if len(r.left()) > 0 {
		// A poll whose context has ended waits for a running rebalance and returns no records.
		ended, end := context.WithCancel(ctx)
		end()
		r.client.PollRecords(ended, 1)
	}
	if left := r.left(); len(left) > 0 {
		return left
	}
	fetches := r.client.PollRecords(ctx, batch)
	fetches.EachError(func(_ string, _ int32, err error) {
		if !errors.Is(err, context.Canceled) {
			r.hook.tell(zerolog.WarnLevel, err, "the status topic cannot be read for a webhook; "+
				"trying again")
		}
	})
	var events []*event
	fetches.EachRecord(func(record *kgo.Record) { events = append(events, &event{Record: record}) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = events
	return events
}

func (r *reader) left() []*event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending
}

// taken drops the events of partitions that another process gets.
func (r *reader) taken(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = slices.DeleteFunc(slices.Clone(r.pending), func(e *event) bool {
		return slices.Contains(partitions[e.Topic], e.Partition)
	})
}

// rebalanceWaits ends the turn a moment later: deliveries usually take less.
func (r *reader) rebalanceWaits(context.Context, *kgo.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := r.endTurn
	time.AfterFunc(slowAfter, func() { end() })
}

// deliver sends a batch: messages at the same time, the events of one message one after the other.
// It marks each partition up to the first event that was not delivered, and keeps the rest.
func (r *reader) deliver(ctx context.Context, events []*event) {
	chains := map[string][]*event{}
	for _, e := range events {
		key := string(e.Key)
		if key == "" { // about no message: by partition
			key = fmt.Sprintf("\x00%d", e.Partition)
		}
		if !e.done {
			chains[key] = append(chains[key], e)
		}
	}
	var calls errgroup.Group
	calls.SetLimit(connections)
	for _, chain := range chains {
		calls.Go(func() error {
			for _, e := range chain {
				if e.done = r.hook.deliver(ctx, e.Record); !e.done {
					return nil
				}
			}
			return nil
		})
	}
	_ = calls.Wait() // none fails
	var left []*event
	stopped := map[int32]bool{} // partitions with an event that was not delivered
	for _, e := range events {
		if stopped[e.Partition] = stopped[e.Partition] || !e.done; stopped[e.Partition] {
			left = append(left, e)
			continue
		}
		r.client.MarkCommitRecords(e.Record)
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
	_ = r.client.CommitMarkedOffsets(ctx) // else they are delivered again
	_ = r.client.LeaveGroupContext(ctx)   // else the broker notices within the session timeout
	r.client.CloseAllowingRebalance()
	r.hook.client.CloseIdleConnections()
}
