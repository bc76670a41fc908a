package decide

import "testing"

// BenchmarkHMACs measures the keyed hashes and the calling code of one message.
func BenchmarkHMACs(b *testing.B) {
	keys, stored := newDrawers(testKeys), make([]byte, 250)
	b.ReportAllocs()
	for b.Loop() {
		keys.ofNumber(0, "+447700900123")
		keys.ofEnvelope(0, "order-7731-otp", stored)
		CallingCode("+447700900123")
	}
}
