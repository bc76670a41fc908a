package kafka_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/ledger"
)

// The numbers are those of the attributes of a record batch in Kafka's protocol.
func TestBatchesAreCompressedAsTheSettingSaysAndWithGzipByDefault(t *testing.T) {
	t.Parallel()
	for name, codec := range map[string]uint8{
		"": 1, "none": 0, "gzip": 1, "snappy": 2, "lz4": 3,
		"zstd": 4,
	} {
		t.Run("compression "+name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			value := strings.Repeat("compressible ", 100)
			o := newOutbox(ledger.Notice{Kind: ledger.Status, Key: "m1", Value: []byte(value)})
			p, err := kafka.NewPublisher(kafka.PublisherConfig{
				Client: seeds(c), Compression: name, Outbox: o,
				StatusTopic: "sms.status", DeadTopic: "sms.dead", InboundTopic: "sms.inbound",
				Log: zerolog.Nop(),
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			record := read(t, c, "sms.status", 1)[0]
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if got := record.Attrs.CompressionType(); got != codec ||
				string(record.Value) != value {
				t.Errorf("codec %d, want %d; value %q", got, codec, record.Value)
			}
		})
	}
}
