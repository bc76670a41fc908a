package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/cmd/dispatcher/internal/tracing"
	"dispatcher/config"
)

// Bounds of what a producer holds in memory, whatever the size of the file.
const (
	bufferedRecords = 10_000
	bufferedBytes   = 32 << 20
	// deliveryTimeout is how long one record may take. Brokers that elect a new leader need a few
	// seconds.
	deliveryTimeout = 30 * time.Second
)

// publish sends the valid messages of the source and returns how many the brokers have confirmed,
// each by all in-sync replicas.
func (c *cli) publish(
	ctx context.Context, s *config.Settings, topic string, from *source, total int64,
) (int64, error) {
	tracer, err := c.tracer(ctx)
	if err != nil {
		return 0, usage(err)
	}
	defer c.exportTraces(ctx, tracer)
	client, err := openProducer(ctx, s, tracer.Publishing()...)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := topicExists(ctx, client, topic); err != nil {
		return 0, usage(kafkaTopicTrouble(s, topic, err))
	}
	show, wipe := c.progress("publishing", total)
	p := &producer{client: client, topic: topic, show: show}
	err = p.produce(ctx, from)
	wipe()
	if err != nil {
		return p.confirmed.Load(), failed(fmt.Errorf("%w; %d of %d messages were published: "+
			"correct that and send all again, the ids keep each from being sent twice",
			err, p.confirmed.Load(), total))
	}
	return p.confirmed.Load(), nil
}

// exportTimeout is how long a command waits at its end for the collector of traces.
const exportTimeout = 5 * time.Second

// tracer records the spans of a command that publishes; nil unless the environment asks for traces.
func (c *cli) tracer(ctx context.Context) (*tracing.Tracer, error) {
	t, err := tracing.FromEnvironment(ctx, versionText())
	if t != nil {
		var once sync.Once
		tracing.OnFailure(func(err error) {
			once.Do(func() { fmt.Fprintf(c.err, "dispatcher: traces are not exported: %v\n", err) })
		})
	}
	return t, err
}

// exportTraces waits for the collector. What the collector does not take is dropped.
func (c *cli) exportTraces(ctx context.Context, t *tracing.Tracer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportTimeout)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		fmt.Fprintf(c.err, "dispatcher: traces are not exported: %v\n", err)
	}
}

// openProducer returns a client for publishing once a broker has answered it.
func openProducer(
	ctx context.Context, s *config.Settings, options ...kgo.Opt,
) (*kgo.Client, error) {
	compression, err := kafka.Compression(s.KafkaCompression)
	if err != nil {
		return nil, usage(err)
	}
	return openKafka(ctx, s, append(options, compression,
		kgo.ClientID("dispatcher-send"),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.MaxBufferedRecords(bufferedRecords),
		kgo.MaxBufferedBytes(bufferedBytes),
		kgo.RecordDeliveryTimeout(deliveryTimeout))...,
	)
}

// producer passes records to the client, which batches them.
type producer struct {
	client    *kgo.Client
	topic     string
	show      func(done int64)
	confirmed atomic.Int64
}

// produce publishes all valid messages. The first failure stops it, because the following ones
// would probably fail too.
func (p *producer) produce(ctx context.Context, from *source) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := from.each(func(m candidate) error {
		if m.problem != "" {
			return nil
		}
		// Blocks while the buffers are full.
		p.client.Produce(ctx, &kgo.Record{Topic: p.topic, Key: []byte(m.id), Value: m.value},
			func(_ *kgo.Record, err error) {
				if err != nil {
					stop(err)
					return
				}
				p.show(p.confirmed.Add(1))
			})
		return context.Cause(ctx)
	})
	if err == nil {
		err = p.client.Flush(ctx)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return publishTrouble(p.topic, err)
}

// publishTrouble turns a failure to publish into a sentence; nil stays nil.
func publishTrouble(topic string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return &codedError{code: exitInterrupted, err: errors.New("interrupted")}
	case errors.Is(err, kgo.ErrRecordTimeout):
		return fmt.Errorf("the brokers did not confirm a message within %s: see that they are up "+
			"and have enough replicas in step", deliveryTimeout)
	case errors.Is(err, kerr.MessageTooLarge):
		return fmt.Errorf("the broker finds a message too large: raise max.message.bytes of topic "+
			"%s to at least 128 KiB", topic)
	}
	return fmt.Errorf("publish to %s: %w", topic, err)
}

// topicExists asks the brokers whether a topic exists.
func topicExists(ctx context.Context, client *kgo.Client, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	topics, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	return topics[topic].Err
}
