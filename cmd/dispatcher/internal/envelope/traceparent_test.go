package envelope_test

import (
	"bytes"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

func TestAnEnvelopeKeepsItsTraceAndItsDigest(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	raw := []byte(" {\"id\":\"a\",\"to\":\"+447700900123\",\"text\":\"Hi\"}")
	before, problem := envelope.Decode(raw, false)
	if problem != nil {
		t.Fatal(problem)
	}
	after, problem := envelope.Decode(envelope.WithTraceparent(raw, trace), false)
	if problem != nil || after.Traceparent != trace || after.Digest() != before.Digest() {
		t.Errorf("got %+v, error %v", after, problem)
	}
	again, problem := envelope.Decode(after.Append(nil), false)
	if problem != nil || again.Traceparent != trace {
		t.Errorf("got %+v, error %v", again, problem)
	}
	for _, empty := range []string{`null`, `""`} {
		raw := strings.Replace(string(raw), "{", `{"traceparent": `+empty+`,`, 1)
		after, problem := envelope.Decode(envelope.WithTraceparent([]byte(raw), trace), false)
		if problem != nil || after.Traceparent != trace || after.Digest() != before.Digest() {
			t.Errorf("in place of %s: got %+v, error %v", empty, after, problem)
		}
	}
	large := []byte(strings.Replace(string(raw), "Hi", strings.Repeat("x", envelope.MaxBytes-100), 1))
	if got := envelope.WithTraceparent(large, trace); !bytes.Equal(got, large) {
		t.Errorf("an envelope of %d bytes becomes one of %d", len(large), len(got))
	}
}
