// Package consume is the way in from Kafka: it reads the topics of the lanes, decodes
// the envelopes and commits an offset once every record before it is durable.
//
//	PollRecords -> decode -> Handle (blocks until durable) -> mark -> AllowRebalance
//
// It decides nothing about a message: what to do with it, bad ones included, is up to
// Handle, which is package dispatch. Package app wires the two.
//
// Each lane has a Kafka client and a consumer group of its own. A client asks for more
// records only after what it has buffered was polled; with one client for all lanes, a
// code sent now would stand behind megabytes of a bulk campaign fetched before it, and
// behind the call of Handle that waits for room for them. With one per lane neither a
// flood, a pause nor a blocked Handle of one lane touches another.
//
// A process is a static member of the groups. One that is killed and started again gets
// its partitions back without a rebalance.
package consume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/cmd/dispatcher/internal/outage"
)

// Lane is a lane and the topics that feed it.
type Lane struct {
	Name   string
	Topics []string
}

// Config is what a Consumer needs.
type Config struct {
	// Client reaches the brokers; see Connection.
	Client []kgo.Opt
	// Group begins the names of the lanes' consumer groups (see the function Group), and
	// ClientID is the name of this process at the brokers, to which the lane's name is added.
	Group    string
	ClientID string
	// Instance is the group instance id of this process (KIP-345): the same after a restart,
	// another for each process that runs. Empty makes it a dynamic member.
	Instance string
	Lanes    []Lane
	// AllowUnknown lets envelopes have fields that nobody knows.
	AllowUnknown bool
	// Rewrite puts the recipient of a record, which is not in E.164, into that form, and returns the record as it is
	// when it cannot; nil leaves all as they are. It is called for records whose recipient was refused.
	Rewrite func(record []byte) []byte
	// Batch is the most records that one call of Handle gets.
	Batch int
	// Handle makes the jobs of one lane durable, in order, and blocks until they are. It
	// is called by one goroutine per lane at the same time. It returns an error only
	// when ctx has ended or nothing can be handled any more, which ends Run; nothing of such
	// a batch is committed. Its ctx ends at the stop and, when it has blocked for some
	// time, for a rebalance of the group; jobs may then be handed over a second time,
	// here or to another process, those that had become durable included.
	Handle func(ctx context.Context, jobs []dispatch.Job) error
	// Paused reports whether a lane must not be read now. It is asked before every poll.
	Paused func(lane string) bool
	Log    zerolog.Logger
	// Outages is told when Kafka or a topic is away; nil tells Log.
	Outages *outage.Log
	// Hooks gives the client of a lane its hooks, such as metrics; may be nil.
	Hooks func(lane string) []kgo.Hook
}

// Validate reports the first field that is missing or out of range.
func (c *Config) Validate() error {
	switch {
	case c.Group == "":
		return errors.New("consume: Group is required")
	case len(c.Lanes) == 0:
		return errors.New("consume: at least one lane is required")
	case c.Batch < 1:
		return errors.New("consume: Batch must be at least 1")
	case c.Handle == nil || c.Paused == nil:
		return errors.New("consume: Handle and Paused are required")
	}
	owner := make(map[string]string)
	for _, lane := range c.Lanes {
		if len(lane.Topics) == 0 {
			return fmt.Errorf("lane %s has no topic: name at least one", lane.Name)
		}
		for _, topic := range lane.Topics {
			if other, taken := owner[topic]; taken {
				return fmt.Errorf("topic %s feeds the lanes %s and %s: it can feed one", topic, other, lane.Name)
			}
			owner[topic] = lane.Name
		}
		if err := kgo.ValidateOpts(c.options(lane)...); err != nil {
			return fmt.Errorf("kafka client of lane %s: %w", lane.Name, err)
		}
	}
	return nil
}

// Consumer reads the lanes of one process.
type Consumer struct {
	cfg    Config
	states *states
}

// New returns a Consumer that has not touched the network yet.
func New(cfg Config) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Outages == nil {
		cfg.Outages = outage.NewLog(cfg.Log)
	}
	return &Consumer{cfg: cfg, states: newStates()}, nil
}

// Run reads until ctx ends or Handle fails for another reason, which it returns. Brokers
// that are away and topics that do not exist are reported and waited for.
// Before it returns it commits what is durable and leaves the group, within a few seconds
// even when the brokers are away.
func (c *Consumer) Run(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	group, running := errgroup.WithContext(running)
	for _, lane := range c.cfg.Lanes {
		group.Go(func() error { return c.runLane(running, lane) })
	}
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

func (c *Consumer) readLane(ctx context.Context, lane Lane, cfg Config) error {
	r, err := newReader(cfg, lane)
	if err != nil {
		return fmt.Errorf("kafka client of lane %s: %w", lane.Name, err)
	}
	defer r.close()
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	w := watch{client: r.client, lane: lane.Name, topics: slices.Clone(lane.Topics), states: c.states}
	c.states.connected(lane.Name, r.client)
	r.probe.Look = w.look
	go func() {
		defer close(watched)
		r.probe.Run(watching)
	}()
	defer func() {
		stop()
		<-watched
	}()
	return r.run(ctx)
}
