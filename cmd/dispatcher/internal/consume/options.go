package consume

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// commitInterval is how far the committed offset may lag behind what is durable;
	// a process that dies makes the others read that much again.
	commitInterval = time.Second
	// sessionTimeout is how long the partitions of a process that was killed wait for it
	// to come back, before others read them. Brokers refuse less than 6 s by default.
	sessionTimeout = 10 * time.Second
	// heartbeatInterval bounds how soon a member hears of a rebalance: measured, a
	// second member has its partitions after 0.5 s with it and after 3 s by default.
	heartbeatInterval = 250 * time.Millisecond
	// What a client buffers, and it buffers one fetch per broker and lane.
	fetchMaxBytes          = 8 << 20
	fetchMaxPartitionBytes = 512 << 10
)

// options are those of one lane's client. What the caller gave stands last and wins.
func (c *Config) options(lane Lane) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ClientID(c.ClientID + "." + lane.Name),
		kgo.ConsumerGroup(Group(c.Group, lane.Name)),
		kgo.ConsumeTopics(lane.Topics...),
		// A group without an offset begins at the start, and so does one whose offset
		// has been deleted: what was published is read, however late.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// What a producer took back in an aborted transaction must not be sent.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(fetchMaxBytes),
		kgo.FetchMaxPartitionBytes(fetchMaxPartitionBytes),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.HeartbeatInterval(heartbeatInterval),
		kgo.SessionTimeout(sessionTimeout),
		kgo.BlockRebalanceOnPoll(),
		// The client commits what is marked, and nothing else.
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
