package publish

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// options are those of the producer; what the caller gives stands behind them and wins.
// They are made anew each time, because a client writes into some of them.
func (c *Config) options() ([]kgo.Opt, error) {
	compression, err := Compression(c.Compression)
	return []kgo.Opt{
		kgo.ClientID("dispatcher-publisher"),
		// Idempotent (the client's default) and acknowledged by all replicas.
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// By the murmur2 hash of the key, as the Java client does: the events of one
		// message lie in one partition, on the one that other tools expect.
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ManualFlushing(), // few and large batches
		compression,
		kgo.RecordDeliveryTimeout(deliveryTimeout),
	}, err
}

// connect gives the flow a client that has not touched the network yet, in place of the one that it may have.
func (p *Publisher) connect(f *flow) error {
	options, err := p.cfg.options()
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(slices.Concat(options, p.cfg.Client)...)
	if err != nil {
		return fmt.Errorf("kafka client of the publisher: %w", err)
	}
	if f.client != nil {
		f.client.Close()
	}
	f.client = client
	return nil
}

// mend does what a failure of a round asks for beyond another round. A client never goes on with a topic that was deleted
// and created anew. Purging the topic would mend that, and would let the next batches begin at sequence zero
// under a producer id that the topic may know: the broker could take them for repetitions and drop them. A new
// client has a producer id of its own.
func (p *Publisher) mend(f *flow, err error) {
	if !errors.Is(err, kerr.UnknownTopicID) {
		return
	}
	if err := p.connect(f); err != nil {
		p.cfg.Trouble("publish", fmt.Errorf("the client of before goes on: %w", err))
	}
}
