package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/embedded/kafkatest"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/config/tier"
)

// one is a topic of a single partition, in which batches follow one another.
const one = "sms.one"

// overlapping is a Handle under which batches of one overlap. Of those that run at a time the first
// ends last.
type overlapping struct {
	mu      sync.Mutex
	durable map[int64]bool // guarded by mu; offsets
	handed  []int64        // guarded by mu: the first offset of each call, in order
	running int            // guarded by mu
	most    int            // guarded by mu: the most calls that ran at a time
	faults  []string       // guarded by mu
	blocked bool           // the first waits until its ctx ends
}

func (o *overlapping) Handle(ctx context.Context, jobs []decide.Job, next func()) error {
	o.mu.Lock()
	o.running++
	first := o.running == 1
	o.most = max(o.most, o.running)
	o.handed = append(o.handed, jobs[0].Origin.Offset)
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.running--
	}()
	next()
	switch {
	case first && o.blocked:
		<-ctx.Done()
		return ctx.Err()
	case first:
		time.Sleep(20 * time.Millisecond) // meanwhile others are done, and offsets are committed
	default:
		time.Sleep(5 * time.Millisecond) // meanwhile others begin
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, job := range jobs {
		o.durable[job.Origin.Offset] = true
	}
	return nil
}

// watchCommits reports each commit that covers a record that is not durable.
func (o *overlapping) watchCommits(c *kfake.Cluster) {
	kafkatest.Observe(c, kmsg.OffsetCommit, func(request kmsg.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, topic := range request.(*kmsg.OffsetCommitRequest).Topics {
			for offset := range topic.Partitions[0].Offset {
				if !o.durable[offset] {
					o.faults = append(o.faults, fmt.Sprintf("%d is committed and %d is not durable",
						topic.Partitions[0].Offset, offset))
					break
				}
			}
		}
	})
}

// await waits until n records are durable.
func (o *overlapping) await(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(testTimeout); ; time.Sleep(time.Millisecond) {
		o.mu.Lock()
		got, faults := len(o.durable), o.faults
		o.mu.Unlock()
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if got >= n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d records are durable", got, n)
		}
	}
}

// ofOne is the configuration of a process that reads one in batches of 100 records.
func ofOne(c *kfake.Cluster, o *overlapping) kafka.ConsumerConfig {
	cfg := config(c, nil)
	cfg.Lanes = []kafka.Lane{{Name: "one", Topics: []string{one}}}
	cfg.Handle = o.Handle
	return cfg
}

func newOverlapping() *overlapping { return &overlapping{durable: map[int64]bool{}} }

// TestThreeBatchesAreHandledAtATime: never four, and no offset is committed before all up to it are
// durable, though the first batch is done last.
func TestThreeBatchesAreHandledAtATime(t *testing.T) {
	t.Parallel()
	c, o := cluster(t, kfake.SeedTopics(1, one)), newOverlapping()
	o.watchCommits(c)
	total := tier.Size(3000, 30_000)
	produce(t, c, one, total)
	p := runConsumer(t, ofOne(c, o))
	o.await(t, total)
	awaitCommitted(t, c, "sms.one", int64(total))
	p.stop(t)
	if o.await(t, total); o.most != 3 {
		t.Errorf("%d batches were handled at a time, want 3", o.most)
	}
	if !slices.IsSorted(o.handed) {
		t.Errorf("batches are handed over out of order: %d", o.handed)
	}
}

// TestBatchesAreReadAgainIfTheFirstIsNotHandled: the process stops while the first batch is in work
// and those after it are durable.
func TestBatchesAreReadAgainIfTheFirstIsNotHandled(t *testing.T) {
	t.Parallel()
	c, o := cluster(t, kfake.SeedTopics(1, one)), newOverlapping()
	o.watchCommits(c)
	o.blocked = true
	produce(t, c, one, 1000)
	p := runConsumer(t, ofOne(c, o))
	o.await(t, 200)
	p.stop(t)
	again := newOverlapping()
	runConsumer(t, ofOne(c, again))
	again.await(t, 1000)
	if again.handed[0] != 0 {
		t.Errorf("record %d is the first that is read again, want 0", again.handed[0])
	}
}

// TestARebalanceEndsAllBatches: a second process gets its partitions although the first one cannot
// handle two batches while the one after them is durable. Then all are handled once more.
func TestARebalanceEndsAllBatches(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	s.watchCommits(c)
	var calls atomic.Int64
	third := make(chan struct{})
	cfg := config(c, s)
	cfg.Lanes = lanes[:1]
	blocking := cfg
	blocking.Handle = func(ctx context.Context, jobs []decide.Job, next func()) error {
		switch calls.Add(1) {
		case 1, 2:
			next()
			<-ctx.Done()
			return ctx.Err()
		case 3:
			defer close(third)
		}
		return s.Handle(ctx, jobs, next)
	}
	s.gaps = true // later batches may be kept before the first
	produce(t, c, "sms.otp", 2000)
	runConsumer(t, blocking)
	select {
	case <-third:
	case <-time.After(testTimeout):
		t.Fatal("the third batch does not come")
	}
	joined := newStore()
	joined.gaps = true
	other := cfg
	other.Handle = both(s, joined)
	runConsumer(t, other)
	total := 2000
	for got := 0; got == 0; total += 120 { // until the second process has partitions
		produce(t, c, "sms.otp", 120)
		s.awaitDistinct(t, total)
		joined.mu.Lock()
		got = len(joined.jobs)
		joined.mu.Unlock()
	}
	s.awaitDistinct(t, total)
	awaitCommitted(t, c, "sms.otp", int64(total))
}

// TestAnErrorOfTheSecondBatchEndsTheProcess, after the first one is done.
func TestAnErrorOfTheSecondBatchEndsTheProcess(t *testing.T) {
	t.Parallel()
	c, o := cluster(t, kfake.SeedTopics(1, one)), newOverlapping()
	o.watchCommits(c)
	broken := errors.New("nothing can be handled")
	cfg := ofOne(c, o)
	cfg.Handle = func(ctx context.Context, jobs []decide.Job, next func()) error {
		if jobs[0].Origin.Offset > 0 {
			return broken
		}
		return o.Handle(ctx, jobs, next)
	}
	produce(t, c, one, 1000)
	consumer, err := kafka.NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := consumer.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Run returns %v", err)
	}
	awaitCommitted(t, c, "sms.one", 100)
}

// TestABatchIsCommittedWhileTheNextOneWaits, for example for slots.
func TestABatchIsCommittedWhileTheNextOneWaits(t *testing.T) {
	t.Parallel()
	c, o := cluster(t, kfake.SeedTopics(1, one)), newOverlapping()
	o.watchCommits(c)
	cfg := ofOne(c, o)
	waits, committed := make(chan struct{}), make(chan struct{})
	cfg.Handle = func(ctx context.Context, jobs []decide.Job, next func()) error {
		switch jobs[0].Origin.Offset {
		case 0:
			next()
			<-waits
		case 100:
			close(waits)
			<-committed
		}
		return o.Handle(ctx, jobs, next)
	}
	produce(t, c, one, 1000)
	runConsumer(t, cfg)
	awaitCommitted(t, c, "sms.one", 100)
	close(committed)
	o.await(t, 1000)
	awaitCommitted(t, c, "sms.one", 1000)
}
