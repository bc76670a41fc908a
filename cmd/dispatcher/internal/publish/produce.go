package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/ledger"
)

const (
	// deliveryTimeout is when a round is given up that no broker takes, so that the
	// trouble is told. A record that may have been written is not given up: to send it
	// again through another sequence could put it behind its successor.
	deliveryTimeout = 10 * time.Second
	// tellEvery is how often a round that waits for acknowledgements is told.
	tellEvery = 15 * time.Second
)

// options are those of the producer; what the caller gives stands behind them and wins.
// They are made anew each time, because a client writes into some of them.
func options() []kgo.Opt {
	return []kgo.Opt{
		kgo.ClientID("dispatcher-publisher"),
		// Idempotent (the client's default) and acknowledged by all replicas.
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// By the murmur2 hash of the key, as the Java client does: the events of one
		// message lie in one partition, on the one that other tools expect.
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ProducerLinger(0), // a round is handed over at once
		kgo.ProducerBatchCompression(kgo.Lz4Compression(), kgo.NoCompression()),
		kgo.RecordDeliveryTimeout(deliveryTimeout),
	}
}

// send produces notices in order and returns nil once every one is acknowledged. After
// ctx has ended it does not wait any longer.
func (p *Publisher) send(ctx context.Context, notices []ledger.Notice) error {
	failures := make(chan error, len(notices)) // one per notice, nil when acknowledged
	for i := range notices {
		p.client.Produce(ctx, p.record(&notices[i]), func(r *kgo.Record, err error) {
			if err != nil {
				err = fmt.Errorf("produce to %s: %w", r.Topic, err)
			}
			failures <- err
		})
	}
	return p.await(ctx, failures)
}

// await takes one answer per notice and returns the first failure among them.
func (p *Publisher) await(ctx context.Context, failures <-chan error) error {
	slow := time.NewTicker(tellEvery)
	defer slow.Stop()
	var first error
	for answered := 0; answered < cap(failures); {
		select {
		case err := <-failures:
			answered++
			if first == nil {
				first = err
			}
		case <-slow.C:
			p.cfg.Log.Warn().Int("waiting", cap(failures)-answered).Msg("Kafka does not acknowledge status events and dead letters; waiting")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return first
}

// sentence tells the operator what a failure of a round means and what mends it.
func (p *Publisher) sentence(err error) string {
	const kept = "status events and dead letters wait in the outbox"
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Sprintf("%s: topic %s or %s does not exist; create it, for example with 12 partitions", kept, p.cfg.StatusTopic, p.cfg.DeadTopic)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Sprintf("%s: the brokers do not let this user write to %s or %s; grant it WRITE and DESCRIBE", kept, p.cfg.StatusTopic, p.cfg.DeadTopic)
	case errors.Is(err, kgo.ErrRecordTimeout):
		return kept + ": no Kafka broker takes them"
	}
	return kept
}
