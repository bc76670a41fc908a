package kafka_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/embedded/kafkatest"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/config/tier"
)

func TestMain(m *testing.M) {
	tier.Parallel(8)
	goleak.VerifyTestMain(m)
}

const (
	partitions  = 12
	testTimeout = tier.LongestWait
	group       = "dispatcher"
)

var lanes = []kafka.Lane{
	{Name: "otp", Topics: []string{"sms.otp"}},
	{Name: "bulk", Topics: []string{"sms.bulk", "sms.bulk2"}},
}

// topics are the topics of lanes, published those of the publisher.
var (
	topics    = []string{"sms.otp", "sms.bulk", "sms.bulk2"}
	published = []string{"sms.status", "sms.dead", "sms.inbound"}
)

// cluster starts a broker with all topics.
func cluster(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.SeedTopics(partitions, slices.Concat(topics, published)...),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// store is a Handle that keeps its jobs in memory, as the ledger would.
type store struct {
	mu      sync.Mutex
	jobs    []decide.Job               // guarded by mu, in order of arrival
	durable map[string]map[int32]int64 // guarded by mu: next offset by topic and partition
	faults  []string                   // guarded by mu: violations
	changed chan struct{}              // guarded by mu; closed at each change and replaced
	gaps    bool                       // whether offsets may be skipped
	before  func(ctx context.Context, jobs []decide.Job) error
}

func newStore() *store {
	return &store{durable: map[string]map[int32]int64{}, changed: make(chan struct{})}
}

func (s *store) Handle(ctx context.Context, jobs []decide.Job, _ func()) error {
	if s.before != nil {
		if err := s.before(ctx, jobs); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range jobs {
		s.keep(job)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

// keep refuses gaps: a skipped offset would be lost once the next one is committed.
func (s *store) keep(job decide.Job) {
	at := s.durable[job.Origin.Topic]
	if at == nil {
		at = map[int32]int64{}
		s.durable[job.Origin.Topic] = at
	}
	if !s.gaps && job.Origin.Offset > at[job.Origin.Partition] {
		s.faults = append(s.faults,
			fmt.Sprintf("%+v came when %d was due", job.Origin, at[job.Origin.Partition]))
	}
	at[job.Origin.Partition] = max(at[job.Origin.Partition], job.Origin.Offset+1)
	s.jobs = append(s.jobs, job)
}

// watchCommits reports each commit of an offset that is not durable yet.
func (s *store) watchCommits(c *kfake.Cluster) {
	names := map[[16]byte]string{} // since version 10 a commit has only the ids of topics
	for _, topic := range topics {
		names[c.TopicInfo(topic).TopicID] = topic
	}
	kafkatest.Observe(c, kmsg.OffsetCommit, func(request kmsg.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, topic := range request.(*kmsg.OffsetCommitRequest).Topics {
			name := cmp.Or(topic.Topic, names[topic.TopicID])
			for _, p := range topic.Partitions {
				if p.Offset > s.durable[name][p.Partition] {
					s.faults = append(
						s.faults,
						fmt.Sprintf("%s/%d committed at %d, durable up to %d", name, p.Partition,
							p.Offset, s.durable[name][p.Partition]),
					)
				}
			}
		}
	})
}

// await blocks until ok returns true for the jobs handled so far, and returns them.
func (s *store) await(t *testing.T, what string, ok func([]decide.Job) bool) []decide.Job {
	t.Helper()
	timeout := time.After(testTimeout)
	for {
		s.mu.Lock()
		jobs, changed, faults := slices.Clone(s.jobs), s.changed, slices.Clone(s.faults)
		s.mu.Unlock()
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if ok(jobs) {
			return jobs
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%s: not after %v; %d jobs, %d distinct", what, testTimeout, len(jobs),
				distinct(jobs))
		}
	}
}

func (s *store) awaitDistinct(t *testing.T, n int) []decide.Job {
	t.Helper()
	return s.await(t, fmt.Sprintf("%d messages", n),
		func(jobs []decide.Job) bool { return distinct(jobs) >= n })
}

func distinct(jobs []decide.Job) int {
	seen := map[decide.Origin]bool{}
	for _, job := range jobs {
		seen[job.Origin] = true
	}
	return len(seen)
}

// config returns the configuration of one process at the cluster; its clients commit every 100 ms.
func config(c *kfake.Cluster, s *store) kafka.ConsumerConfig {
	return kafka.ConsumerConfig{
		Client:   append(seeds(c), kgo.AutoCommitInterval(100*time.Millisecond)),
		Group:    group,
		ClientID: "test",
		Lanes:    lanes,
		Batch:    100,
		Handle:   s.Handle,
		Paused:   func(string) bool { return false },
		Log:      zerolog.Nop(),
	}
}

// process is a running Consumer.
type process struct {
	consumer *kafka.Consumer
	cancel   context.CancelFunc
	done     chan error
}

func runConsumer(t *testing.T, cfg kafka.ConsumerConfig) *process {
	t.Helper()
	consumer, err := kafka.NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{consumer: consumer, cancel: cancel, done: make(chan error, 1)}
	go func() { p.done <- consumer.Run(ctx) }()
	t.Cleanup(func() { p.stop(t) })
	return p
}

// stop ends the process and waits for it; an error of Run fails the test.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.cancel()
	if err := p.wait(t); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func (p *process) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.done:
		p.done <- nil
		return err
	case <-time.After(testTimeout):
		t.Fatal("Run did not end")
		return nil
	}
}

// seeds returns the options with the addresses of the cluster.
func seeds(c *kfake.Cluster) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(c.ListenAddrs()...),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
}

func client(t *testing.T, c *kfake.Cluster, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(options, seeds(c)...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// produce publishes n good envelopes to a topic, spread over its partitions.
func produce(t *testing.T, c *kfake.Cluster, topic string, n int) {
	t.Helper()
	publish(t, client(t, c), topic, n)
}

func publish(t *testing.T, client *kgo.Client, topic string, n int) {
	t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		value := fmt.Sprintf(`{"id":"%s-%d","to":"+447700900123","text":"hello"}`, topic, i)
		records[i] = &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: []byte(value)}
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// committed returns the sum of the group's offsets on a topic.
func committed(t *testing.T, client *kgo.Client, topic string) int64 {
	group := kafka.Group(group, laneOf(topic))
	t.Helper()
	request := kmsg.NewPtrOffsetFetchRequest()
	wanted := kmsg.NewOffsetFetchRequestGroup()
	wanted.Group = group
	request.Groups = append(request.Groups, wanted)
	request.Group = group
	answer, err := request.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, g := range answer.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				if t.Topic == topic {
					sum += max(p.Offset, 0)
				}
			}
		}
	}
	return sum
}

// awaitCommitted blocks until the group's offsets on a topic add up to n.
func awaitCommitted(t *testing.T, c *kfake.Cluster, topic string, n int64) {
	t.Helper()
	client := client(t, c)
	var got int64
	await(t, fmt.Sprintf("%s is committed up to %d", topic, n), func() bool {
		got = committed(t, client, topic)
		return got == n
	}, func() any { return got })
}

// await is tier.Within. When the condition does not hold in time, it logs the state.
func await(t *testing.T, what string, ok func() bool, state func() any) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%v", state())
		}
	}()
	tier.Within(t, testTimeout, what, ok)
}

// journal is a log that can be searched while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// await blocks until the journal contains a text.
func (j *journal) await(t *testing.T, sentence string) {
	t.Helper()
	await(t, fmt.Sprintf("%q is in the log", sentence), func() bool {
		return strings.Contains(j.String(), sentence)
	}, func() any { return j })
}

// spread returns the partitions of a topic that the jobs came from.
func spread(jobs []decide.Job, topic string) []int32 {
	seen := map[int32]bool{}
	for _, job := range jobs {
		if job.Origin.Topic == topic {
			seen[job.Origin.Partition] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// laneOf returns the lane of a topic.
func laneOf(topic string) string {
	for _, lane := range lanes {
		if slices.Contains(lane.Topics, topic) {
			return lane.Name
		}
	}
	return strings.TrimPrefix(topic, "sms.") // a lane of one test
}
