package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dispatcher/cmd/dispatcher/internal/embedded/kafkatest"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/ledger"
)

// outbox keeps notices in memory, as the ledger does in its table.
type outbox struct {
	mu      sync.Mutex
	notices []ledger.Notice // guarded by mu
	inbound []ledger.Notice // guarded by mu: messages of subscribers
	calls   int             // guarded by mu: calls of Publish
	changed chan struct{}   // receives after each call of Publish, if there is room
}

func newOutbox(notices ...ledger.Notice) *outbox {
	return &outbox{notices: notices, changed: make(chan struct{}, 1)}
}

func (o *outbox) Publish(
	ctx context.Context, limit int, send func(context.Context, []ledger.Notice) error,
) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	defer func() {
		select {
		case o.changed <- struct{}{}:
		default:
		}
	}()
	round := o.notices[:min(limit, len(o.notices))]
	if len(round) == 0 {
		return 0, nil
	}
	if err := send(ctx, round); err != nil {
		return 0, err
	}
	o.notices = o.notices[len(round):]
	return len(round), nil
}

// PublishInbound does the same for messages of subscribers.
func (o *outbox) PublishInbound(
	ctx context.Context, limit int, send func(context.Context, []ledger.Notice) error,
) (int, error) {
	o.mu.Lock()
	round := o.inbound[:min(limit, len(o.inbound))]
	o.mu.Unlock()
	if len(round) == 0 {
		return 0, nil
	}
	if err := send(ctx, round); err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inbound = o.inbound[len(round):]
	return len(round), nil
}

func (o *outbox) add(notices ...ledger.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notices = append(o.notices, notices...)
}

// awaitEmpty blocks until every notice has been taken out.
func (o *outbox) awaitEmpty(t *testing.T) {
	t.Helper()
	timeout := time.After(testTimeout)
	for {
		o.mu.Lock()
		left := len(o.notices)
		o.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-o.changed:
		case <-timeout:
			t.Fatalf("got %d notices left, want 0", left)
		}
	}
}

// create creates a topic of 12 partitions, and remove deletes one.
func create(t *testing.T, c *kfake.Cluster, topic string) {
	t.Helper()
	req, anew := kmsg.NewPtrCreateTopicsRequest(), kmsg.NewCreateTopicsRequestTopic()
	anew.Topic, anew.NumPartitions, anew.ReplicationFactor = topic, 12, 1
	req.Topics = append(req.Topics, anew)
	ask(t, c, func(ctx context.Context, client *kgo.Client) error {
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	})
}

func remove(t *testing.T, c *kfake.Cluster, topic string) {
	t.Helper()
	req, old := kmsg.NewPtrDeleteTopicsRequest(), kmsg.NewDeleteTopicsRequestTopic()
	old.Topic = &topic
	req.TopicNames, req.Topics = []string{topic}, append(req.Topics, old)
	ask(t, c, func(ctx context.Context, client *kgo.Client) error {
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	})
}

func ask(t *testing.T, c *kfake.Cluster, request func(context.Context, *kgo.Client) error) {
	t.Helper()
	client := client(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if err := request(ctx, client); err != nil {
		t.Fatal(err)
	}
}

// runPublisher starts a publisher; the function it returns stops it and waits.
func runPublisher(t *testing.T, o *outbox, log *bytes.Buffer, client ...kgo.Opt) (stop func()) {
	t.Helper()
	logger := zerolog.Nop()
	if log != nil {
		logger = zerolog.New(log)
	}
	p, err := kafka.NewPublisher(
		kafka.PublisherConfig{
			Client:       client,
			Outbox:       o,
			StatusTopic:  "sms.status",
			DeadTopic:    "sms.dead",
			InboundTopic: "sms.inbound",
			Log:          logger,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(testTimeout):
			t.Error("Run did not end")
		}
	})
	t.Cleanup(stop)
	return stop
}

// read returns n records of a topic, in order within a partition.
func read(t *testing.T, c *kfake.Cluster, topic string, n int) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(
		append(seeds(c), kgo.ConsumeTopics(topic),
			kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	var records []*kgo.Record
	for len(records) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d of %d records: %v", len(records), n, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records
}

// history returns n events for each of the keys, interleaved.
func history(keys, n int) []ledger.Notice {
	var notices []ledger.Notice
	for i := range n {
		for k := range keys {
			notices = append(
				notices,
				ledger.Notice{
					Kind:  ledger.Status,
					Key:   fmt.Sprintf("m%d", k),
					Value: fmt.Append(nil, i),
				},
			)
		}
	}
	return notices
}

// checkOrder reads everything and reports a key whose events, apart from repeats, are not complete
// and in order.
func checkOrder(t *testing.T, c *kfake.Cluster, keys, n int) {
	t.Helper()
	next := map[string]int{}
	for _, r := range read(t, c, "sms.status", keys*n) {
		var i int
		if _, err := fmt.Sscan(string(r.Value), &i); err != nil {
			t.Fatal(err)
		}
		if i > next[string(r.Key)] {
			t.Fatalf("%s: got event %d, want event %d", r.Key, i, next[string(r.Key)])
		}
		next[string(r.Key)] = max(next[string(r.Key)], i+1)
	}
	for key, i := range next {
		if i != n {
			t.Errorf("%s: %d of %d events", key, i, n)
		}
	}
}

func TestNoticesReachTheirTopicWithKeyAndHeaders(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	o := newOutbox(
		ledger.Notice{
			Kind: ledger.Status, Key: "m1",
			Value: []byte(`{"id":"m1","state":"sending","at":"2026-11-21T10:00:00.000000Z"}`),
			Seq:   41, At: time.Date(2026, 11, 21, 11, 0, 1, 5000, time.FixedZone("", 3600)),
		},
		ledger.Notice{
			Kind:  ledger.Letter,
			Value: []byte("\x00raw"),
			Headers: []ledger.Header{
				{Key: "reason", Value: "bad_json"},
				{Key: "lane", Value: "otp"},
			},
		},
	)
	o.inbound = []ledger.Notice{
		{Kind: ledger.InboundNotice, Key: "+447700900123", Value: []byte(`{"id":"i"}`)},
	}
	runPublisher(t, o, nil, seeds(c)...)
	o.awaitEmpty(t)
	status, dead := read(t, c, "sms.status", 1)[0], read(t, c, "sms.dead", 1)[0]
	inbound := read(t, c, "sms.inbound", 1)[0]
	if string(inbound.Key) != "+447700900123" || string(inbound.Value) != `{"id":"i"}` {
		t.Errorf("inbound record: %+v", inbound)
	}
	if string(status.Key) != "m1" ||
		string(
			status.Value,
		) != `{"id":"m1","state":"sending","seq":41,"at":"2026-11-21T10:00:01.000005Z"}` ||
		len(status.Headers) != 0 {
		t.Errorf("status record: %+v", status)
	}
	want := []kgo.RecordHeader{
		{Key: "reason", Value: []byte("bad_json")},
		{Key: "lane", Value: []byte("otp")},
	}
	if diff := cmp.Diff(want, dead.Headers); dead.Key != nil || string(dead.Value) != "\x00raw" ||
		diff != "" {
		t.Errorf("dead letter: %+v", dead)
	}
}

func TestEventsOfAMessageKeepTheirOrder(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	o := newOutbox(history(1000, 6)...) // more than one round
	runPublisher(t, o, nil, seeds(c)...)
	o.awaitEmpty(t)
	checkOrder(t, c, 1000, 6)
}

// TestKeysLieWhereTheJavaClientPutsThem compares the partitioner with hashes from the tests of
// Apache Kafka (UtilsTest.testMurmur2).
func TestKeysLieWhereTheJavaClientPutsThem(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	murmur2 := map[string]int32{
		"21":                       -973932308,
		"foobar":                   -790332482,
		"a-little-bit-long-string": -985981536,
		"abc":                      479470107,
	}
	o := newOutbox()
	for key := range murmur2 {
		o.add(ledger.Notice{Kind: ledger.Status, Key: key})
	}
	runPublisher(t, o, nil, seeds(c)...)
	for _, r := range read(t, c, "sms.status", len(murmur2)) {
		if want := (murmur2[string(r.Key)] & 0x7fffffff) % 12; r.Partition != want {
			t.Errorf("%s lies in partition %d, want %d", r.Key, r.Partition, want)
		}
	}
}

// TestAFailedProduceIsRepeatedInOrder: for records that were not written, and for records that were
// written although the request failed.
func TestAFailedProduceIsRepeatedInOrder(t *testing.T) {
	t.Parallel()
	for answer, written := range map[*kerr.Error]bool{
		kerr.NotLeaderForPartition: false, kerr.UnknownServerError: false,
		kerr.RequestTimedOut: true, kerr.NotEnoughReplicasAfterAppend: true,
	} {
		t.Run(answer.Message, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			var fault *kafkatest.Fault
			if written {
				fault = kafkatest.FailApplied(t, c, kmsg.Produce, 2, answer)
			} else {
				fault = kafkatest.Refuse(c, kmsg.Produce, 2, answer)
			}
			o := newOutbox(history(60, 8)...)
			runPublisher(t, o, nil, seeds(c)...)
			o.awaitEmpty(t)
			if fault.Hits() == 0 {
				t.Fatal("no request was refused")
			}
			checkOrder(t, c, 60, 8)
		})
	}
}

func TestAMissingStatusTopicIsNamedAndNothingIsLost(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "sms.status"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	o := newOutbox(ledger.Notice{Kind: ledger.Letter, Key: "m1"})
	var log bytes.Buffer
	stop := runPublisher(t, o, &log, seeds(c)...)
	for range 2 { // at the second call the first has been reported
		<-o.changed
	}
	stop()
	if !strings.Contains(log.String(), "topic sms.status or sms.dead does not exist") {
		t.Errorf("log: %s", &log)
	}
	if len(o.notices) != 1 {
		t.Error("the notice was removed")
	}
}

// TestPublishingContinuesOnATopicThatWasCreatedAnew: no notice that waits in the outbox is lost.
func TestPublishingContinuesOnATopicThatWasCreatedAnew(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	o := newOutbox(history(20, 3)...)
	o.add(ledger.Notice{Kind: ledger.Letter, Key: "before"})
	var log bytes.Buffer
	stop := runPublisher(t, o, &log, seeds(c)...)
	o.awaitEmpty(t)
	for range 2 {
		remove(t, c, "sms.status")
		create(t, c, "sms.status")
		o.add(history(20, 3)...)
		o.add(ledger.Notice{Kind: ledger.Letter, Key: "after"})
		o.awaitEmpty(t)
		checkOrder(t, c, 20, 3)
	}
	stop()
	if !strings.Contains(log.String(), "was deleted and created anew") {
		t.Errorf("log: %s", &log)
	}
	seen := map[string]int{}
	for _, letter := range read(t, c, "sms.dead", 3) {
		seen[string(letter.Key)]++
	}
	if seen["before"] != 1 || seen["after"] < 2 { // a round that failed is repeated
		t.Errorf("dead letters: %v", seen)
	}
}

// TestStatusEventsDoNotWaitForTheTopicOfInboundMessages: without that topic, inbound messages wait
// and status events are published.
func TestStatusEventsDoNotWaitForTheTopicOfInboundMessages(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "sms.status", "sms.dead"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	o := newOutbox()
	o.inbound = []ledger.Notice{{Kind: ledger.InboundNotice, Key: "+447700900123", Value: []byte("x")}}
	var log bytes.Buffer
	stop := runPublisher(t, o, &log, seeds(c)...)
	for range 3 {
		o.add(ledger.Notice{Kind: ledger.Status, Key: "m1"})
		o.awaitEmpty(t)
	}
	stop()
	if len(o.inbound) != 1 {
		t.Error("the inbound message was removed")
	}
}

func TestPublisherStopsWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	reached, hold := make(chan struct{}), make(chan struct{})
	arrive := sync.OnceFunc(func() { close(reached) })
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		// The whole broker is blocked. SleepControl would delay only this request, but
		// a cluster that is closed just after such a sleep can block for ever.
		arrive()
		<-hold
		return nil, nil, false
	})
	o := newOutbox(ledger.Notice{Kind: ledger.Status, Key: "m1"})
	stop := runPublisher(t, o, nil, seeds(c)...)
	<-reached // on the wire and without an answer
	began := time.Now()
	stop()
	if took := time.Since(began); took > 30*time.Second { // within seconds on an idle machine
		t.Errorf("took %v", took)
	}
	close(hold)
	if len(o.notices) != 1 {
		t.Error("a notice without acknowledgement was removed")
	}
}

func TestANoticeThatNoBrokerWouldTakeIsCut(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	long := bytes.Repeat([]byte("x"), 2<<20)
	o := newOutbox(ledger.Notice{Kind: ledger.Letter, Key: "m1", Value: long},
		ledger.Notice{Kind: ledger.Letter, Key: "m1", Value: []byte("next")})
	runPublisher(t, o, nil, seeds(c)...)
	o.awaitEmpty(t)
	records := read(t, c, "sms.dead", 2)
	cut := records[0]
	want := []kgo.RecordHeader{{Key: "original_bytes", Value: []byte("2097152")}}
	if diff := cmp.Diff(want, cut.Headers); len(cut.Value) != 900<<10 || diff != "" {
		t.Errorf("%d bytes, headers %v", len(cut.Value), cut.Headers)
	}
	if string(records[1].Value) != "next" {
		t.Error("the next notice does not follow it")
	}
}

// failingOutbox is an outbox whose database is away.
type failingOutbox struct{ calls chan time.Time }

func (failingOutbox) PublishInbound(
	context.Context, int, func(context.Context, []ledger.Notice) error,
) (int, error) {
	return 0, nil
}

func (f failingOutbox) Publish(
	context.Context, int, func(context.Context, []ledger.Notice) error,
) (int, error) {
	f.calls <- time.Now()
	return 0, errors.New("connect publisher: connection refused")
}

func TestPausesGrowWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	f := failingOutbox{make(chan time.Time, 100)} // it never blocks
	p, err := kafka.NewPublisher(
		kafka.PublisherConfig{
			Client:       seeds(c),
			Outbox:       f,
			StatusTopic:  "s",
			DeadTopic:    "d",
			InboundTopic: "i",
			Log:          zerolog.Nop(),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	var calls []time.Time
	for range 4 {
		calls = append(calls, <-f.calls)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for i, ms := range []int{100, 200, 400} {
		least := time.Duration(ms) * time.Millisecond
		if pause := calls[i+1].Sub(calls[i]); pause < least {
			t.Errorf("pause %d is %v, want at least %v", i, pause, least)
		}
	}
}

func TestPublisherConfigurationsThatLackAPartAreRefused(t *testing.T) {
	t.Parallel()
	good := kafka.PublisherConfig{
		Client:       []kgo.Opt{kgo.SeedBrokers("127.0.0.1:1")},
		Outbox:       newOutbox(),
		StatusTopic:  "s",
		DeadTopic:    "d",
		InboundTopic: "i",
	}
	for want, spoil := range map[string]func(*kafka.PublisherConfig){
		"Outbox is required":         func(c *kafka.PublisherConfig) { c.Outbox = nil },
		"DeadTopic and InboundTopic": func(c *kafka.PublisherConfig) { c.InboundTopic = "" },
		"is none of none, gzip":      func(c *kafka.PublisherConfig) { c.Compression = "LZ4" },
		"kafka client of the publis": func(c *kafka.PublisherConfig) {
			c.Client = []kgo.Opt{kgo.SeedBrokers()}
		},
	} {
		cfg := good
		spoil(&cfg)
		if _, err := kafka.NewPublisher(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
