package envelope_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

// FuzzDecode compares Decode with encoding/json on the same bytes and with Append: it never panics,
// with a problem it returns only the id, and an accepted message survives a round trip.
func FuzzDecode(f *testing.F) {
	for _, raw := range goodEnvelopes {
		f.Add([]byte(raw), false)
	}
	for _, bad := range badEnvelopes {
		f.Add([]byte(bad.raw), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, allowUnknown bool) {
		m, problem := envelope.Decode(raw, allowUnknown)
		if problem != nil {
			if problem.Code == "" || problem.Detail == "" {
				t.Errorf("problem without a code: %+v", problem)
			}
			if diff := cmp.Diff(envelope.Message{ID: m.ID}, m); diff != "" {
				t.Errorf("a refused message has more than its id:\n%s", diff)
			}
			return
		}
		var simple struct{ ID, To, Text string }
		if err := json.Unmarshal(raw, &simple); err != nil {
			t.Fatalf("encoding/json refuses what Decode accepts: %v", err)
		}
		// With unknown fields allowed encoding/json may accept "ID" for "id"; then the comparison proves
		// nothing.
		if !allowUnknown && (simple.ID != m.ID || simple.To != m.To || simple.Text != m.Text) {
			t.Errorf("encoding/json reads another message: %+v and %+v", simple, m)
		}
		again, problem := envelope.Decode(m.Append(nil), false)
		if problem != nil {
			if strings.Contains(problem.Detail, "64 KiB") {
				return // escapes were shorter in the original
			}
			t.Fatalf("what Append writes is refused: %v", problem)
		}
		if again.Digest() != m.Digest() {
			t.Errorf("message changed in the round trip:\n%s", cmp.Diff(m, again))
		}
	})
}
