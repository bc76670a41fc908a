package kafka

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

// BenchmarkCompression compresses batches of 500 status events as the producer does, and reports
// the cost and the compressed size of one event. "gzip -6" is the level that gzip has by default.
func BenchmarkCompression(b *testing.B) {
	const events = 500
	batch := statusEvents(events)
	for name, codec := range map[string]kgo.CompressionCodec{
		"gzip": codecs["gzip"], "gzip -6": kgo.GzipCompression(), "snappy": codecs["snappy"],
		"lz4": codecs["lz4"], "zstd": codecs["zstd"],
	} {
		b.Run(name, func(b *testing.B) {
			compressor, err := kgo.DefaultCompressor(codec)
			if err != nil {
				b.Fatal(err)
			}
			var out bytes.Buffer
			size := 0
			for b.Loop() {
				out.Reset()
				compressed, _ := compressor.Compress(&out, batch)
				size = len(compressed)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*events), "ns/event")
			b.ReportMetric(float64(len(batch))/events, "bytes/event")
			b.ReportMetric(float64(size)/float64(len(batch)), "left")
		})
	}
}

// statusEvents returns events of accepted messages as on the topic, with distinct ids of producers
// and providers.
func statusEvents(n int) (batch []byte) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same events in each run
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for i := range n {
		id := fmt.Sprintf("order-%016x-otp", random.Uint64())
		when := at.Add(time.Duration(i) * 25 * time.Microsecond)
		event := envelope.AppendStatus(nil, envelope.Status{
			ID: id, State: "accepted", At: when, Lane: "otp", Tenant: "shop", Route: "default",
			Channel: string(rune('a' + i%3)), Attempt: 1, Code: "0x00000000",
			Reference: fmt.Sprintf("%012x", random.Uint64()>>16), Segments: 1,
			Metadata: map[string]string{"order": fmt.Sprint(7000 + i)},
		})
		batch = append(batch, id...)
		batch = envelope.Stamp(batch, event, int64(i+1), when)
	}
	return batch
}
