package kafka

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/ledger"
)

const (
	// deliveryTimeout is the time after which a round that no broker takes is given up and reported. A
	// record that may have been written is not given up: sending it again with another sequence number
	// could put it after its successor.
	deliveryTimeout = 10 * time.Second
	// slowAfter is the time after which a round that waits for acknowledgements is reported.
	slowAfter = 15 * time.Second
)

// codecs are the compressions by name.
var codecs = map[string]kgo.CompressionCodec{
	"":       fastGzip,
	"none":   kgo.NoCompression(),
	"gzip":   fastGzip,
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var fastGzip = kgo.GzipCompression().WithLevel(gzip.BestSpeed)

// Compression is the option of a producer that compresses batches. name is a value of
// DISPATCHER_KAFKA_COMPRESSION; empty is the default, gzip.
//
// gzip is the default because every client library reads it without an extra package, at its
// fastest level; docs/benchmark.md says what each compression costs.
//
// A broker that is too old for zstd gets batches without compression.
func Compression(name string) (kgo.Opt, error) {
	codec, ok := codecs[name]
	if !ok {
		return nil, fmt.Errorf("publisher: compression %q is none of none, gzip, snappy, lz4, zstd",
			name)
	}
	return kgo.ProducerBatchCompression(codec, kgo.NoCompression()), nil
}

// connect gives the flow a new client, which has not touched the network yet, and closes the old
// one.
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

// options returns the options of the producer; the caller's come last and take precedence. They are
// made for each client, because a client writes into some of them.
func (c *PublisherConfig) options() ([]kgo.Opt, error) {
	compression, err := Compression(c.Compression)
	return []kgo.Opt{
		kgo.ClientID("dispatcher-publisher"),
		// Idempotent (the client's default) and acknowledged by all replicas.
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// By the murmur2 hash of the key, as the Java client does: the events of one message are in one
		// partition, the same that other tools expect.
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ManualFlushing(), // few and large batches
		compression,
		kgo.RecordDeliveryTimeout(deliveryTimeout),
	}, err
}

// send produces the notices, in order for each key, and returns nil once every one is
// acknowledged. After ctx has ended it does not wait any longer.
//
// A batch that is refused must not be overtaken by its successor. The client keeps the order when
// it retries by itself, but goes on with the next batch after an answer that it takes for final.
// And the records of one flush may be sent in several pieces: while the client asks for the
// partitions of a topic, or while it is busy with the flush before. Therefore a wave is
// acknowledged before the next one begins, and the records within a wave need no order. A wave too
// large for one batch is sent as several, one after the other, which bounds what has to be
// acknowledged within deliveryTimeout.
func (p *Publisher) send(ctx context.Context, f *flow, notices []ledger.Notice) error {
	for _, wave := range waves(notices) {
		records := p.records(wave)
		for len(records) > 0 {
			n := fit(records)
			if err := p.produce(ctx, f, records[:n]); err != nil {
				return err
			}
			records = records[n:]
		}
	}
	return nil
}

// produce sends records that fit one batch. It returns their first failure, or if there is one, the
// failure that needs a new client (see reconnect).
func (p *Publisher) produce(ctx context.Context, f *flow, records []*kgo.Record) error {
	slow := time.AfterFunc(slowAfter, func() {
		p.cfg.Outages.Down(outage.Report{
			What: OutageName, Reporter: f.what, Err: context.DeadlineExceeded,
			Sentence: "Kafka does not acknowledge " + f.what + "; they wait in the outbox: " +
				"check that its brokers run and have enough replicas in sync",
		})
	})
	defer slow.Stop()
	var answers answers
	answers.missing.Add(len(records))
	answered := answers.add // once, because a method value is allocated
	for _, record := range records {
		f.client.Produce(ctx, record, answered)
	}
	if err := f.client.Flush(ctx); err != nil {
		return err
	}
	answers.missing.Wait()
	return answers.failure
}

// answers collects what became of the records of one batch.
type answers struct {
	missing sync.WaitGroup // one for each record
	mu      sync.Mutex
	failure error // guarded by mu; see produce
}

// add is called once for each record, without an error when it is acknowledged.
func (a *answers) add(r *kgo.Record, err error) {
	defer a.missing.Done()
	if err == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failure == nil || errors.Is(err, kerr.UnknownTopicID) {
		a.failure = fmt.Errorf("produce to %s: %w", r.Topic, err)
	}
}
