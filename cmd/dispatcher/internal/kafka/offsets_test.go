package kafka_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/embedded/kafkatest"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/config/tier"
)

func TestNoCommitRunsAheadOfWhatIsDurable(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	s.watchCommits(c)
	produce(t, c, "sms.otp", 5000)
	produce(t, c, "sms.bulk", 5000)
	p := runConsumer(t, config(c, s))
	s.awaitDistinct(t, 10_000)
	awaitCommitted(t, c, "sms.otp", 5000)
	awaitCommitted(t, c, "sms.bulk", 5000)
	p.stop(t)
	s.awaitDistinct(t, 10_000)
}

func TestWhatIsDurableIsCommittedAtTheStop(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	s.watchCommits(c)
	cfg := config(c, s)
	cfg.Client = append(cfg.Client, kgo.AutoCommitInterval(testTimeout)) // no timed commit
	produce(t, c, "sms.otp", 500)
	p := runConsumer(t, cfg)
	s.awaitDistinct(t, 500)
	p.stop(t)
	awaitCommitted(t, c, "sms.otp", 500)
}

func TestABatchThatTheStopInterruptsIsReadAgain(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	s.watchCommits(c)
	reached := make(chan struct{}, len(lanes))
	var calls, stored atomic.Int64
	s.before = func(ctx context.Context, jobs []decide.Job) error {
		if calls.Add(1) != 4 {
			stored.Add(int64(len(jobs)))
			return nil
		}
		reached <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	produce(t, c, "sms.otp", 1000)
	p := runConsumer(t, config(c, s))
	<-reached
	p.stop(t)
	awaitCommitted(t, c, "sms.otp", stored.Load())
	runConsumer(t, config(c, s))
	if jobs := s.awaitDistinct(t, 1000); len(jobs) != 1000 {
		t.Errorf("%d jobs: a record was handled twice although its offset was committed", len(jobs))
	}
}

// TestCommitsThatAreRefusedLoseNothing covers a commit that failed and was not applied: it is
// repeated. If the process ends before, the records are read again.
func TestCommitsThatAreRefusedLoseNothing(t *testing.T) {
	t.Parallel()
	for _, answer := range []*kerr.Error{
		kerr.RebalanceInProgress, kerr.NotCoordinator, kerr.CoordinatorNotAvailable,
		kerr.UnknownServerError,
	} {
		t.Run(answer.Message, func(t *testing.T) {
			t.Parallel()
			c, s := cluster(t), newStore()
			s.watchCommits(c)
			fault := kafkatest.Refuse(c, kmsg.OffsetCommit, 3, answer)
			produce(t, c, "sms.otp", 500)
			runConsumer(t, config(c, s))
			s.awaitDistinct(t, 500)
			if err := fault.Wait(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			awaitCommitted(t, c, "sms.otp", 500)
		})
	}
}

func TestRecordsWhoseCommitNeverSucceedsAreReadAgain(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	fault := kafkatest.Refuse(c, kmsg.OffsetCommit, kafkatest.Always, kerr.GroupAuthorizationFailed)
	produce(t, c, "sms.otp", 500)
	p := runConsumer(t, config(c, s))
	s.awaitDistinct(t, 500)
	p.stop(t)
	if fault.Hits() == 0 {
		t.Fatal("no commit was refused")
	}
	fault.Remove()
	again := newStore()
	runConsumer(t, config(c, again))
	again.awaitDistinct(t, 500)
	awaitCommitted(t, c, "sms.otp", 500)
}

// TestACommitThatLandedThoughItsAnswerFailedLosesNothing covers a commit that was applied although
// it failed: the broker answers REQUEST_TIMED_OUT after it has stored the offset.
func TestACommitThatLandedThoughItsAnswerFailedLosesNothing(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	s.watchCommits(c)
	fault := kafkatest.FailApplied(t, c, kmsg.OffsetCommit, kafkatest.Always, kerr.RequestTimedOut)
	produce(t, c, "sms.otp", 500)
	p := runConsumer(t, config(c, s))
	s.awaitDistinct(t, 500)
	p.stop(t)
	if fault.Hits() == 0 {
		t.Fatal("no commit was refused")
	}
	awaitCommitted(t, c, "sms.otp", 500) // it was applied
	fault.Remove()
	produce(t, c, "sms.otp", 100)
	runConsumer(t, config(c, s))
	if jobs := s.awaitDistinct(t, 600); len(jobs) != 600 {
		t.Errorf("%d jobs, want 600", len(jobs))
	}
}

// TestARebalanceLosesNothing: under load a second member joins, takes half of every topic, and the
// first one leaves.
func TestARebalanceLosesNothing(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	s := newStore() // of both members: it also checks that offsets have no gaps
	s.watchCommits(c)
	total := tier.Size(4000, 20_000)
	producer := client(t, c)
	publish(t, producer, "sms.otp", total/4)
	publish(t, producer, "sms.bulk", total/4)
	alone := config(c, s)
	alone.Lanes = []kafka.Lane{
		{Name: "otp", Topics: []string{"sms.otp"}},
		{Name: "bulk", Topics: []string{"sms.bulk"}},
	}
	first := runConsumer(t, alone)
	s.await(t, "the first records", func(jobs []decide.Job) bool { return len(jobs) > 0 })

	joined := newStore()
	second := alone
	second.Handle = both(s, joined)
	runConsumer(t, second)
	balanced := func(jobs []decide.Job) bool {
		return len(spread(jobs, "sms.otp")) >= partitions/2 &&
			len(spread(jobs, "sms.bulk")) >= partitions/2
	}
	published := total / 2
	deadline := time.Now().Add(testTimeout)
	for done := false; !done; published += 2 * partitions * 10 {
		publish(t, producer, "sms.otp", partitions*10)
		publish(t, producer, "sms.bulk", partitions*10)
		s.awaitDistinct(t, published)
		if time.Now().After(deadline) {
			t.Fatal("the second member does not get half of each topic")
		}
		joined.mu.Lock()
		done = balanced(joined.jobs)
		joined.mu.Unlock()
	}
	first.stop(t)
	publish(t, producer, "sms.otp", total/4)
	publish(t, producer, "sms.bulk", total/4)
	jobs := s.awaitDistinct(t, published+total/2)
	t.Logf("%d messages, %d of them read twice", distinct(jobs), len(jobs)-distinct(jobs))
}

// both passes jobs to two stores.
func both(a, b *store) func(context.Context, []decide.Job, func()) error {
	return func(ctx context.Context, jobs []decide.Job, next func()) error {
		if err := a.Handle(ctx, jobs, next); err != nil {
			return err
		}
		return b.Handle(ctx, jobs, next)
	}
}

// TestARebalanceMayTakeAllThatIsPending: it ends at once, and not with the next record of the lane.
// Of two partitions one passes to the second member, while the first one cannot handle its record.
// Without AllowRebalance in poll, one of thirty of these rebalances does not end.
func TestARebalanceMayTakeAllThatIsPending(t *testing.T) {
	t.Parallel()
	for round := range tier.Size(2, 60) {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			c, s := cluster(t, kfake.SeedTopics(2, "sms.quiet")), newStore()
			cfg := config(c, s)
			cfg.Lanes = []kafka.Lane{{Name: "quiet", Topics: []string{"sms.quiet"}}}
			first, blocked := cfg, make(chan struct{}, 100)
			first.Handle = func(ctx context.Context, _ []decide.Job, _ func()) error {
				blocked <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			}
			one := client(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if err := one.ProduceSync(t.Context(), &kgo.Record{
				Topic: "sms.quiet", Partition: int32(round % 2),
				Value: []byte(`{"id":"a","to":"+447700900123","text":"hello"}`),
			}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			runConsumer(t, first)
			<-blocked
			runConsumer(t, cfg)
			awaitHalves(t, kadm.NewClient(one), kafka.Group(group, "quiet"))
		})
	}
}

// awaitHalves waits until each of two members of a group has one partition.
func awaitHalves(t *testing.T, admin *kadm.Client, group string) {
	t.Helper()
	for end := time.Now().Add(testTimeout); ; time.Sleep(10 * time.Millisecond) {
		described, err := admin.DescribeGroups(t.Context(), group)
		if err != nil {
			t.Fatal(err)
		}
		halves := 0
		for _, m := range described[group].Members {
			if a, ok := m.Assigned.AsConsumer(); ok && len(a.Topics) == 1 &&
				len(a.Topics[0].Partitions) == 1 {
				halves++
			}
		}
		if described[group].State == "Stable" && halves == 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the group is %+v", described[group])
		}
	}
}

// TestABatchThatARebalanceInterruptsIsHandledByItsReader blocks the first member's Handle until the
// second one joins. The first member then handles the records of the partitions that it keeps, the
// second one the others. Otherwise the store would see a gap.
func TestABatchThatARebalanceInterruptsIsHandledByItsReader(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	s.watchCommits(c)
	var once sync.Once
	blocked := make(chan struct{})
	cfg := config(c, s)
	cfg.Lanes, cfg.Batch = lanes[:1], 5000 // the first batch holds all records
	first := cfg
	first.Handle = func(ctx context.Context, jobs []decide.Job, next func()) error {
		if len(spread(jobs, "sms.otp")) < partitions {
			return s.Handle(ctx, jobs, next)
		}
		once.Do(func() { close(blocked) })
		<-ctx.Done()
		return ctx.Err()
	}
	produce(t, c, "sms.otp", 1200)
	total := 1200
	runConsumer(t, first)
	for full := false; !full; {
		select {
		case <-blocked:
			full = true
		case <-time.After(2 * time.Second): // the first poll did not return every partition
			produce(t, c, "sms.otp", 1200)
			total += 1200
		}
	}
	joined := newStore()
	second := cfg
	second.Handle = both(s, joined)
	runConsumer(t, second)
	if jobs := s.awaitDistinct(t, total); len(jobs) != total {
		t.Errorf("%d jobs: a record was handled by both", len(jobs))
	}
	awaitCommitted(t, c, "sms.otp", int64(total))
	if got := len(spread(joined.jobs, "sms.otp")); got != partitions/2 {
		t.Errorf("the second member has handled %d partitions", got)
	}
}
