package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/outage"
)

const (
	// commitInterval is how far the committed offset may lag behind what is durable. When a process
	// dies, the records of that time are read again.
	commitInterval = time.Second
	// sessionTimeout is how long the partitions of a killed process are kept for its restart, before
	// other processes read them. Brokers refuse less than 6 s by default.
	sessionTimeout = 10 * time.Second
	// heartbeatInterval bounds how soon a member learns of a rebalance. Measured: a second member has
	// its partitions after 0.5 s with it and after 3 s by default.
	heartbeatInterval = 250 * time.Millisecond
	// Sizes of a fetch. The client of each lane buffers one per broker.
	fetchMaxBytes          = 8 << 20
	fetchMaxPartitionBytes = 512 << 10
)

// Lane is a lane and the topics that feed it.
type Lane struct {
	Name   string
	Topics []string
}

// ConsumerConfig is what a Consumer needs.
type ConsumerConfig struct {
	// Client reaches the brokers; see Connection.
	Client []kgo.Opt
	// Group is the prefix of the consumer groups of the lanes (see the function Group). ClientID is
	// the name of this process at the brokers; the lane's name is appended.
	Group    string
	ClientID string
	// Instance is the group instance id of this process (KIP-345): the same after a restart, and
	// different for each running process. Empty makes the process a dynamic member.
	Instance string
	Lanes    []Lane
	// AllowUnknown lets envelopes have unknown fields.
	AllowUnknown bool
	// Rewrite gets a record whose recipient is not in E.164, and returns it with the recipient
	// in that form, or unchanged when it cannot. Nil leaves all records unchanged.
	Rewrite func(record []byte) []byte
	// Traceparent returns the trace that a fetched record belongs to, which is stored with the record;
	// empty for none. Nil traces nothing.
	Traceparent func(*kgo.Record) string
	// Batch is the most records that one call of Handle gets; after calls that a rebalance ended,
	// as many as they got.
	Batch int
	// Handle makes the jobs of one lane durable, in order, and blocks until they are. It may call next
	// when the jobs after these may be handed over; up to three calls of a lane then run at a time. It
	// returns an error only when ctx has ended, or when nothing can be handled any more, which ends
	// Run; then nothing of the batch is committed. Its ctx ends at the stop and, when it has blocked
	// for some time, for a rebalance of the group. After that its jobs may be handed over again, here
	// or to another process, even those that were durable already.
	Handle func(ctx context.Context, jobs []decide.Job, next func()) error
	// Paused reports whether a lane must not be read now. It is called before every poll.
	Paused func(lane string) bool
	Log    zerolog.Logger
	// Outages gets reports when Kafka or a topic is away; nil sends them to Log.
	Outages *outage.Log
	// Hooks gives the client of a lane its hooks, such as metrics; may be nil.
	Hooks func(lane string) []kgo.Hook
}

// Validate reports the first field that is missing or out of range.
func (c *ConsumerConfig) Validate() error {
	switch {
	case c.Group == "":
		return errors.New("consumer: Group is required")
	case len(c.Lanes) == 0:
		return errors.New("consumer: at least one lane is required")
	case c.Batch < 1:
		return errors.New("consumer: Batch must be at least 1")
	case c.Handle == nil || c.Paused == nil:
		return errors.New("consumer: Handle and Paused are required")
	}
	owner := make(map[string]string)
	for _, lane := range c.Lanes {
		if len(lane.Topics) == 0 {
			return fmt.Errorf("lane %s has no topic: name at least one", lane.Name)
		}
		for _, topic := range lane.Topics {
			if other, taken := owner[topic]; taken {
				return fmt.Errorf("topic %s feeds the lanes %s and %s: it can feed one",
					topic, other, lane.Name)
			}
			owner[topic] = lane.Name
		}
		if err := kgo.ValidateOpts(c.options(lane)...); err != nil {
			return fmt.Errorf("kafka client of lane %s: %w", lane.Name, err)
		}
	}
	return nil
}

// options returns the options of one lane's client. The caller's options come last and take
// precedence.
func (c *ConsumerConfig) options(lane Lane) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ClientID(c.ClientID + "." + lane.Name),
		kgo.ConsumerGroup(Group(c.Group, lane.Name)),
		kgo.ConsumeTopics(lane.Topics...),
		// A group without an offset begins at the start, and so does one whose offset was deleted: every
		// published record is read, however late.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// Records of an aborted transaction must not be sent.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(fetchMaxBytes),
		kgo.FetchMaxPartitionBytes(fetchMaxPartitionBytes),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.HeartbeatInterval(heartbeatInterval),
		kgo.SessionTimeout(sessionTimeout),
		kgo.BlockRebalanceOnPoll(),
		// The client commits only what is marked.
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(commitInterval),
	}
	if c.Instance != "" {
		options = append(options, kgo.InstanceID(c.Instance))
	}
	if c.Hooks != nil {
		options = append(options, kgo.WithHooks(c.Hooks(lane.Name)...))
	}
	return append(options, c.Client...)
}

// Consumer reads the lanes of one process.
//
// Each lane has a Kafka client and a consumer group of its own. A client asks for more records only
// after those that it has buffered were polled. With one client for all lanes, an OTP would wait
// behind megabytes of a bulk campaign that were fetched before it, and behind the call of Handle
// that waits for free slots. With one client per lane, a flood, a pause or a blocked Handle of one
// lane does not delay another.
//
// A process is a static member of the groups. One that is killed and started again gets
// its partitions back without a rebalance.
type Consumer struct {
	cfg    ConsumerConfig
	states *states
}

// NewConsumer returns a Consumer that has not touched the network yet.
func NewConsumer(cfg ConsumerConfig) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Outages == nil {
		cfg.Outages = outage.NewLog(cfg.Log)
	}
	return &Consumer{cfg: cfg, states: newStates()}, nil
}

// Run reads until ctx ends or Handle fails for another reason, which it returns. Brokers that are
// away and topics that do not exist are reported and waited for. Before it returns it commits what
// is durable and leaves the group, within a few seconds even when the brokers are away.
func (c *Consumer) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	for _, lane := range c.cfg.Lanes {
		group.Go(c.reading(running, lane))
	}
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// reading reads a lane until ctx ends. When another process takes over the membership, it goes on
// as a dynamic member: joining again under the same id would only remove the other process.
func (c *Consumer) reading(ctx context.Context, lane Lane) func() error {
	return func() error {
		for cfg := c.cfg; ; cfg.Instance = "" {
			r, closeReader, err := c.open(ctx, lane, cfg)
			if err != nil {
				return fmt.Errorf("kafka client of lane %s: %w", lane.Name, err)
			}
			err = r.run(ctx)
			closeReader()
			if !errors.Is(err, errFenced) || cfg.Instance == "" {
				return err
			}
			c.cfg.Log.Warn().Str("lane", lane.Name).Str("instance_id", cfg.Instance).
				Msg("another process has joined the consumer group under this instance id; " +
					"reading on without one")
		}
	}
}

// open returns a reader of a lane, whose topics and brokers are watched until it is closed.
func (c *Consumer) open(
	ctx context.Context, lane Lane, cfg ConsumerConfig,
) (r *reader, closeReader func(), err error) {
	if r, err = newReader(cfg, lane); err != nil {
		return nil, nil, err
	}
	w := watch{client: r.client, lane: lane, states: c.states}
	c.states.connected(lane.Name, r.client)
	r.probe.Check = w.check
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.probe.Run(watching)
	}()
	return r, func() {
		stop()
		<-watched
		r.close()
	}, nil
}
