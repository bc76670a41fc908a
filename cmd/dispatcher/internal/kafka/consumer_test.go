package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/kafka"
)

func TestEveryRecordBecomesAJobOfItsLane(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	produce(t, c, "sms.otp", 300)
	produce(t, c, "sms.bulk", 300)
	produce(t, c, "sms.bulk2", 300)
	runConsumer(t, config(c, s))
	laneOf := map[string]string{"sms.otp": "otp", "sms.bulk": "bulk", "sms.bulk2": "bulk"}
	for _, job := range s.awaitDistinct(t, 900) {
		switch {
		case job.Lane != laneOf[job.Origin.Topic]:
			t.Errorf("%+v is in lane %s", job.Origin, job.Lane)
		case job.Problem != nil:
			t.Errorf("%+v: %v", job.Origin, job.Problem)
		case !strings.HasPrefix(job.Message.ID, job.Origin.Topic+"-") ||
			!strings.Contains(string(job.Raw), job.Message.ID):
			t.Errorf("%+v has id %q and bytes %s", job.Origin, job.Message.ID, job.Raw)
		case time.Since(job.Produced) > time.Minute:
			t.Errorf("%+v was produced at %v", job.Origin, job.Produced)
		}
	}
}

func TestPoisonRecordsPassOnWithTheirProblemAndBytes(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	poison := []*kgo.Record{
		{Value: []byte("not JSON")},
		{Value: nil},
		{Value: []byte(`{"id":"known","to":"no number","text":"x"}`)},
		{
			Value: []byte(
				`{"id":"big","to":"+447700900123","text":"` + strings.Repeat("x",
					envelope.MaxBytes) + `"}`,
			),
		},
		{Value: []byte(`{"id":"good","to":"+447700900123","text":"x"}`)},
	}
	for _, record := range poison {
		record.Topic, record.Key = "sms.otp", []byte("same partition")
	}
	if err := client(t, c).ProduceSync(t.Context(), poison...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	runConsumer(t, config(c, s))
	want := []struct {
		id   string
		code envelope.Code
	}{
		{"", envelope.BadJSON},
		{"", envelope.BadJSON},
		{"known", envelope.BadNumber},
		{"big", envelope.TooLarge},
		{"good", ""},
	}
	for i, job := range s.awaitDistinct(t, len(poison)) {
		var code envelope.Code
		if job.Problem != nil {
			code = job.Problem.Code
		}
		if job.Message.ID != want[i].id || code != want[i].code ||
			string(job.Raw) != string(poison[i].Value) {
			t.Errorf("record %d: id %q, code %q, %d bytes", i, job.Message.ID, code, len(job.Raw))
		}
	}
	awaitCommitted(t, c, "sms.otp", int64(len(poison)))
}

func TestUnknownFieldsAreRefusedByDefault(t *testing.T) {
	t.Parallel()
	for _, allow := range []bool{false, true} {
		c, s := cluster(t), newStore()
		record := &kgo.Record{
			Topic: "sms.otp",
			Value: []byte(`{"id":"i","to":"+447700900123","text":"x","more":1}`),
		}
		if err := client(t, c).ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
		cfg := config(c, s)
		cfg.AllowUnknown = allow
		runConsumer(t, cfg)
		if problem := s.awaitDistinct(t, 1)[0].Problem; (problem == nil) != allow {
			t.Errorf("AllowUnknown %v: %v", allow, problem)
		}
	}
}

func TestHandleGetsNoMoreThanABatch(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	var largest atomic.Int64
	s.before = func(_ context.Context, jobs []decide.Job) error {
		for n := int64(len(jobs)); ; {
			old := largest.Load()
			if n <= old || largest.CompareAndSwap(old, n) {
				return nil
			}
		}
	}
	produce(t, c, "sms.otp", 1000)
	cfg := config(c, s)
	cfg.Batch = 7
	runConsumer(t, cfg)
	s.awaitDistinct(t, 1000)
	if largest.Load() != 7 {
		t.Errorf("got largest batch %d, want 7", largest.Load())
	}
}

// TestABlockedLaneDoesNotHoldUpAnother: the bulk lane has ten thousand records, and its Handle
// never returns.
func TestABlockedLaneDoesNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	stuck := make(chan struct{}, 1)
	s.before = func(ctx context.Context, jobs []decide.Job) error {
		if jobs[0].Lane != "bulk" {
			return nil
		}
		stuck <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	produce(t, c, "sms.bulk", 10_000)
	runConsumer(t, config(c, s))
	<-stuck
	produce(t, c, "sms.otp", 200)
	for _, job := range s.awaitDistinct(t, 200) {
		if job.Lane != "otp" {
			t.Fatalf("%+v was handled", job.Origin)
		}
	}
	awaitCommitted(t, c, "sms.otp", 200)
}

// TestAFloodDelaysNoCode publishes otp messages while a bulk backlog is handled batch by batch. The
// otp messages must not wait for records that the bulk client has fetched.
func TestAFloodDelaysNoCode(t *testing.T) {
	t.Parallel()
	const flood = 20_000
	c, s := cluster(t), newStore()
	gate := make(chan struct{})
	s.before = func(ctx context.Context, jobs []decide.Job) error {
		if jobs[0].Lane != "bulk" {
			return nil
		}
		select {
		case <-gate: // one batch per otp message
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	produce(t, c, "sms.bulk", flood)
	runConsumer(t, config(c, s))
	gate <- struct{}{}
	producer := client(t, c)
	for i := range 20 {
		publish(t, producer, "sms.otp", 1)
		s.await(t, "the code", func(jobs []decide.Job) bool {
			n := 0
			for _, job := range jobs {
				if job.Lane == "otp" {
					n++
				}
			}
			return n > i
		})
		gate <- struct{}{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := len(s.jobs); got > flood/2 {
		t.Errorf("%d records were handled before the last code", got)
	}
}

func TestAPausedLaneWaitsAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	var paused atomic.Bool
	paused.Store(true)
	cfg := config(c, s)
	asked := make(chan struct{})
	cfg.Paused = func(lane string) bool {
		if lane != "bulk" || !paused.Load() {
			return false
		}
		select {
		case asked <- struct{}{}:
		default:
		}
		return true
	}
	produce(t, c, "sms.bulk", 500)
	produce(t, c, "sms.otp", 500)
	runConsumer(t, cfg)
	for range 5 {
		select {
		case <-asked: // the lane runs and wants to read
		case <-time.After(testTimeout):
			t.Fatal("Paused was not called")
		}
	}
	produce(t, c, "sms.otp", 100)
	for _, job := range s.awaitDistinct(t, 600) {
		if job.Lane == "bulk" {
			t.Fatalf("%+v was read although its lane is paused", job.Origin)
		}
	}
	paused.Store(false)
	s.awaitDistinct(t, 1100)
}

// TestAnAbortedTransactionIsNotRead: its records must not be sent.
func TestAnAbortedTransactionIsNotRead(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	s.gaps = true // aborted records and the markers of transactions have offsets too
	producer := client(t, c, kgo.TransactionalID("shop"))
	for _, commit := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		id := map[kgo.TransactionEndTry]string{
			kgo.TryAbort:  "taken back",
			kgo.TryCommit: "meant",
		}[commit]
		record := &kgo.Record{
			Topic: "sms.otp",
			Key:   []byte("k"),
			Value: fmt.Appendf(nil, `{"id":%q,"to":"+447700900123","text":"x"}`, id),
		}
		if err := producer.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := producer.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
	runConsumer(t, config(c, s))
	if jobs := s.awaitDistinct(t, 1); len(jobs) != 1 || jobs[0].Message.ID != "meant" {
		t.Errorf("read %q", jobs[0].Message.ID)
	}
}

func TestConsumerConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	for want, spoil := range map[string]func(*kafka.ConsumerConfig){
		"Group is required": func(c *kafka.ConsumerConfig) { c.Group = "" },
		"at least one lane": func(c *kafka.ConsumerConfig) { c.Lanes = nil },
		"lane otp has no topic": func(c *kafka.ConsumerConfig) {
			c.Lanes = []kafka.Lane{{Name: "otp"}}
		},
		"topic t feeds the lanes a and b": func(c *kafka.ConsumerConfig) {
			c.Lanes = []kafka.Lane{{"a", []string{"t"}}, {"b", []string{"t"}}}
		},
		"Batch must be at least 1": func(c *kafka.ConsumerConfig) { c.Batch = 0 },
		"Handle and Paused":        func(c *kafka.ConsumerConfig) { c.Handle = nil },
		"kafka client of lane otp": func(c *kafka.ConsumerConfig) {
			c.Client = []kgo.Opt{kgo.AutoCommitInterval(-1)}
		},
		"lane otp: config erroneously has no se": func(c *kafka.ConsumerConfig) {
			c.Client = []kgo.Opt{kgo.SeedBrokers()}
		},
	} {
		cfg := config(c, newStore())
		spoil(&cfg)
		if _, err := kafka.NewConsumer(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestAPermanentFaultEndsTheRunAndCommitsNothingBehindIt(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	s.watchCommits(c)
	broken := errors.New("the ledger is of a newer version")
	var calls, handled atomic.Int64
	s.before = func(_ context.Context, jobs []decide.Job) error {
		if calls.Add(1) == 3 {
			return broken
		}
		handled.Add(int64(len(jobs)))
		return nil
	}
	produce(t, c, "sms.otp", 1000)
	first := runConsumer(t, config(c, s))
	if err := first.wait(t); !errors.Is(err, broken) {
		t.Fatalf("Run ended with %v", err)
	}
	// The last commit is that of the two batches before. A poll may return less than a full batch.
	awaitCommitted(t, c, "sms.otp", handled.Load())
	runConsumer(t, config(c, s))
	s.awaitDistinct(t, 1000)
}
