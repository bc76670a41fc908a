package envelope

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// Digest distinguishes a redelivery from a second message with the same id. It is the first eight
// bytes of the SHA-256 of a canonical form of all fields. The order of a document's members, its
// white space and escapes, the time zone of a time, and null or absent make no difference; the
// order of selectors does.
//
// Stored digests are compared with new ones, so the canonical form may never change.
func (m Message) Digest() int64 {
	var space [1024]byte
	sum := sha256.Sum256(m.appendCanonical(space[:0]))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// appendCanonical writes every field in a fixed order, those of variable length after their length,
// so that no two messages have the same form.
func (m Message) appendCanonical(b []byte) []byte {
	for _, s := range [...]string{m.ID, m.To, m.From, m.Text, m.Tenant} {
		b = canonString(b, s)
	}
	b = canonTime(canonTime(b, m.SendAt), m.ExpiresAt)
	if m.MaxPrice == nil {
		b = append(b, 0)
	} else {
		b = canonInt(append(b, 1), *m.MaxPrice)
	}
	var space [maxEntries]string
	b = canonInt(b, int64(len(m.Labels)))
	for _, key := range sortedKeys(space[:0], m.Labels) {
		b = canonValue(canonString(b, key), m.Labels[key])
	}
	b = canonInt(b, int64(len(m.Selectors)))
	for _, s := range m.Selectors {
		b = canonValue(canonString(canonString(b, s.Key), string(s.Operator)), s.Value)
		if s.ExpiresAfter > 0 {
			// Without an expiry, a length follows here. Its first byte is 0, so the two cannot be confused.
			b = canonInt(append(b, 'e'), s.ExpiresAfter.Milliseconds())
		}
	}
	b = canonInt(b, int64(len(m.Metadata)))
	for _, key := range sortedKeys(space[:0], m.Metadata) {
		b = canonString(canonString(b, key), m.Metadata[key])
	}
	return b
}

// sortedKeys appends the keys of a map, sorted, to the empty slice space.
func sortedKeys[V any](space []string, m map[string]V) []string {
	for key := range m {
		space = append(space, key)
	}
	slices.Sort(space)
	return space
}

func canonInt(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n))
}

func canonString(b []byte, s string) []byte {
	return append(canonInt(b, int64(len(s))), s...)
}

func canonTime(b []byte, t time.Time) []byte {
	return canonInt(canonInt(b, t.Unix()), int64(t.Nanosecond()))
}

func canonValue(b []byte, v Value) []byte {
	if !v.IsNumber {
		return canonString(append(b, 't'), v.Text)
	}
	// Adding zero turns -0 into 0, because the two compare equal.
	return canonInt(append(b, 'n'), int64(math.Float64bits(v.Number+0)))
}
