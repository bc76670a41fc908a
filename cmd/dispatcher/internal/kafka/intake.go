package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// intakeRecords and intakeBytes bound what an Intake holds in memory; beyond that, publishing
	// waits.
	intakeRecords = 20_000
	intakeBytes   = 64 << 20
)

// ErrUnconfirmed means that no broker has confirmed a record in time. It may still be in the topic.
var ErrUnconfirmed = errors.New("the brokers did not confirm the record in time")

// Intake writes records to the topics of lanes: messages handed over other than by Kafka, and dead
// records that are published again.
type Intake struct{ client *kgo.Client }

// NewIntake returns an Intake that has not touched the network yet. Its options reach the brokers,
// see Connection; compression is a name for the function Compression.
func NewIntake(compression string, options ...kgo.Opt) (*Intake, error) {
	codec, err := Compression(compression)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.ClientID("dispatcher-intake"),
		// Idempotent (the client's default) and acknowledged by all replicas.
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// By the murmur2 hash of the key, as the Java client does.
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		codec,
		kgo.MaxBufferedRecords(intakeRecords),
		kgo.MaxBufferedBytes(intakeBytes),
		kgo.RecordDeliveryTimeout(deliveryTimeout),
	}, options...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client of the intake: %w", err)
	}
	return &Intake{client}, nil
}

// Publish writes records and returns for each, in order, nil once all in-sync replicas have it, or
// else an error. It returns when all are answered, or when ctx has ended.
func (i *Intake) Publish(ctx context.Context, records []*kgo.Record) []error {
	type answer struct {
		at  int
		err error
	}
	answers := make(chan answer, len(records))
	for at, record := range records {
		i.client.Produce(ctx, record, func(_ *kgo.Record, err error) { answers <- answer{at, err} })
	}
	out := make([]error, len(records))
	for at := range out {
		out[at] = ErrUnconfirmed
	}
	for range records {
		select {
		case a := <-answers:
			out[a.at] = a.err
		case <-ctx.Done():
			return out
		}
	}
	return out
}

// PublishOne writes one record and returns nil once all in-sync replicas have it.
func (i *Intake) PublishOne(ctx context.Context, topic, id string, value []byte) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	return i.Publish(ctx, []*kgo.Record{{Topic: topic, Key: []byte(id), Value: value}})[0]
}

// Close aborts what is in progress; its callers get an error.
func (i *Intake) Close() { i.client.Close() }
