package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// tellAfter is when a round that waits for acknowledgements is told.
	tellAfter = 15 * time.Second
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
		kgo.ManualFlushing(), // a round leaves as one batch per partition, see send
		kgo.ProducerBatchCompression(kgo.Lz4Compression(), kgo.NoCompression()),
		kgo.RecordDeliveryTimeout(deliveryTimeout),
	}
}

// send produces notices in order and returns nil once every one is acknowledged. After
// ctx has ended it does not wait any longer.
//
// What is under way at one time is no more than one batch per partition, so that a
// batch that is refused cannot be overtaken by its successor: the client keeps the order when
// it tries again by itself, but goes on with the next batch after an answer that it
// takes for final. A topic is met with one record alone: the client asks for its partitions only then, and what waits for
// the answer leaves in pieces as it is shared out, of which one that is refused would be overtaken by the next.
func (p *Publisher) send(ctx context.Context, f *flow, notices []ledger.Notice) error {
	records := make([]*kgo.Record, len(notices))
	for i := range notices {
		records[i] = p.record(&notices[i])
	}
	for len(records) > 0 {
		n := f.together(records)
		if err := p.produce(ctx, f, records[:n]); err != nil {
			return err
		}
		for _, r := range records[:n] {
			f.met[r.Topic] = true
		}
		records = records[n:]
	}
	return nil
}

// together is how many of the records, at least one, may be under way at one time.
func (f *flow) together(records []*kgo.Record) int {
	n := fit(records)
	unmet := slices.IndexFunc(records[:n], func(r *kgo.Record) bool { return !f.met[r.Topic] })
	if unmet < 0 {
		return n
	}
	return max(unmet, 1)
}

// produce sends records that fit one batch and returns the first failure among them.
func (p *Publisher) produce(ctx context.Context, f *flow, records []*kgo.Record) error {
	slow := time.AfterFunc(tellAfter, func() {
		p.cfg.Log.Warn().Int("waiting", len(records)).Msg("Kafka does not acknowledge " + f.what + "; waiting")
	})
	defer slow.Stop()
	answers := make(chan error, len(records)) // one per record, nil when acknowledged
	for _, record := range records {
		f.client.Produce(ctx, record, func(_ *kgo.Record, err error) { answers <- err })
	}
	if err := f.client.Flush(ctx); err != nil {
		return err
	}
	var first error
	for _, record := range records {
		if err := <-answers; err != nil && first == nil {
			first = fmt.Errorf("produce to %s: %w", record.Topic, err)
		}
	}
	return first
}

// sentence tells the operator what a failure of a round means and what mends it.
func (f *flow) sentence(err error) string {
	kept := f.what + " wait in the outbox"
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Sprintf("%s: topic %s does not exist; create it, for example with 12 partitions", kept, f.topics)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Sprintf("%s: the brokers do not let this user write to %s; grant it WRITE and DESCRIBE", kept, f.topics)
	case errors.Is(err, kgo.ErrRecordTimeout):
		return kept + ": no Kafka broker takes them"
	}
	return kept
}
