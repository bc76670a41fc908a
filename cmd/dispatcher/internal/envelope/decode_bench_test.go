package envelope_test

import (
	"testing"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

// typical is the example of docs/kafka.md: every field, one entry in each collection.
const typical = `{"id":"order-7731-otp","to":"+447700900123","from":"ACME","text":"Your code is 123456","tenant":"shop",
 "labels":{"language":"en"},"selectors":[{"key":"quality","operator":"greaterThanEqual","value":5}],
 "send_at":"2026-11-21T10:00:00Z","expires_at":"2026-11-21T10:10:00Z","max_price":"0.05","metadata":{"order":"7731"}}`

const plain = `{"id":"order-7731-otp","to":"+447700900123","from":"ACME","text":"Your code is 123456","tenant":"shop"}`

func BenchmarkDecode(b *testing.B) {
	for name, raw := range map[string][]byte{"typical": []byte(typical), "plain": []byte(plain)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, problem := envelope.Decode(raw, false); problem != nil {
					b.Fatal(problem)
				}
			}
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	m, _ := envelope.Decode([]byte(typical), false)
	b.ReportAllocs()
	for b.Loop() {
		m.Digest()
	}
}
