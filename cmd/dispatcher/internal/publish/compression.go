package publish

import (
	"compress/gzip"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Compression is the option of a producer that compresses batches as
// DISPATCHER_KAFKA_COMPRESSION says; the empty name is the default, gzip.
//
// gzip is the default because every client library reads it without an extra package, at its
// fastest level; docs/benchmark.md says what each compression costs.
//
// A broker that is too old for zstd gets batches without compression.
func Compression(name string) (kgo.Opt, error) {
	codec, ok := codecs[name]
	if !ok {
		return nil, fmt.Errorf("publish: compression %q is none of none, gzip, snappy, lz4, zstd", name)
	}
	return kgo.ProducerBatchCompression(codec, kgo.NoCompression()), nil
}

var fastGzip = kgo.GzipCompression().WithLevel(gzip.BestSpeed)

// codecs are the compressions by name.
var codecs = map[string]kgo.CompressionCodec{
	"": fastGzip, "gzip": fastGzip, "none": kgo.NoCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}
