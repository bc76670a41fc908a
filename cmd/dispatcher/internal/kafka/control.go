package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

// ControlGroup is appended to the prefix of the consumer groups for the group of the control topic.
// The name of a lane has no colon, so no lane has the same group.
const ControlGroup = "control:topic"

// ControlConfig is what a ControlReader needs.
type ControlConfig struct {
	Client          []kgo.Opt // reaches the brokers; see Connection
	Group, ClientID string    // as in ConsumerConfig
	Topic           string
	// Handle does what a record asks for, and returns an error when it must be called again.
	Handle func(ctx context.Context, c *envelope.Control) error
	// Trouble is called with failures that are tried again.
	Trouble func(what string, err error)
	Log     zerolog.Logger
}

// ControlReader reads the control topic. A record is committed once it is handled; it may be
// handled again, by any process.
type ControlReader struct {
	cfg    ControlConfig
	client *kgo.Client
}

// Pauses and bounds of a ControlReader.
const (
	controlBatch = 100
	controlPause = time.Second // before a record is tried again
)

// NewControlReader returns a ControlReader that has not touched the network yet.
func NewControlReader(cfg ControlConfig) (*ControlReader, error) {
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.ClientID(cfg.ClientID + ".control"),
		kgo.ConsumerGroup(Group(cfg.Group, ControlGroup)),
		kgo.ConsumeTopics(cfg.Topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.HeartbeatInterval(heartbeatInterval),
		kgo.SessionTimeout(sessionTimeout),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(commitInterval),
	}, cfg.Client...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client of the control topic: %w", err)
	}
	return &ControlReader{cfg, client}, nil
}

// Run reads until ctx ends.
func (r *ControlReader) Run(ctx context.Context) error {
	defer r.close()
	for ctx.Err() == nil {
		fetches := r.client.PollRecords(ctx, controlBatch)
		fetches.EachError(func(_ string, _ int32, err error) {
			if !errors.Is(err, context.Canceled) {
				r.cfg.Trouble("control topic", fmt.Errorf("read %s: %w", r.cfg.Topic, err))
			}
		})
		for _, record := range fetches.Records() {
			if !r.handle(ctx, record) {
				return nil
			}
			r.client.MarkCommitRecords(record)
		}
	}
	return nil
}

// handle reports whether the record is done; false means that ctx has ended.
func (r *ControlReader) handle(ctx context.Context, record *kgo.Record) bool {
	c, problem := envelope.DecodeControl(record.Value)
	if problem != nil {
		r.cfg.Log.Warn().Str("topic", record.Topic).Int32("partition", record.Partition).
			Int64("offset", record.Offset).Str("problem", problem.String()).
			Msg("a record of the control topic cannot be used; it is passed over")
		return true
	}
	for {
		err := r.cfg.Handle(ctx, &c)
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			r.cfg.Trouble("control topic", err)
		}
		select {
		case <-time.After(controlPause):
		case <-ctx.Done():
			return false
		}
	}
}

// close commits what is done and leaves the group, within a bounded time.
func (r *ControlReader) close() {
	ctx, stop := context.WithTimeout(context.Background(), shutdownTimeout)
	defer stop()
	_ = r.client.CommitMarkedOffsets(ctx) // else it is read again, which does no harm
	_ = r.client.LeaveGroupContext(ctx)   // else the broker notices within the session timeout
	r.client.Close()
}
