package envelope_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

var accepted = envelope.Status{
	ID: "order-7731-otp", State: "accepted", At: time.Date(2026, 11, 21, 11, 0, 1, 234_567_890, time.FixedZone("", 3600)), Lane: "otp",
	Tenant: "shop", Route: "default", Channel: "a", Attempt: 2, Reason: "fallback", Detail: "to is not a number", Cause: "absent", Code: "0x00000000", Reference: "r1 r2", Segments: 2, PartsAccepted: 1,
	PossibleDuplicate: true, ConflictingID: "other", Position: &envelope.Position{Topic: "sms.otp", Offset: 17}, Metadata: map[string]string{"order": "7731", "basket": "a\"b"},
}

func TestAppendStatusWritesEveryField(t *testing.T) {
	t.Parallel()
	const want = `x{"id":"order-7731-otp","state":"accepted","at":"2026-11-21T10:00:01.234567Z","lane":"otp","tenant":"shop","route":"default",` +
		`"channel":"a","attempt":2,"reason":"fallback","detail":"to is not a number","cause":"absent","code":"0x00000000","reference":"r1 r2","segments":2,"parts_accepted":1,"possible_duplicate":true,"conflicting_id":"other","topic":"sms.otp","partition":0,"offset":17,` +
		`"metadata":{"basket":"a\"b","order":"7731"}}`
	if diff := cmp.Diff(want, string(envelope.AppendStatus([]byte("x"), accepted))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAppendStatusLeavesEmptyFieldsOut(t *testing.T) {
	t.Parallel()
	got := envelope.AppendStatus(nil, envelope.Status{ID: "i", State: "dead", Lane: "bulk", At: time.Unix(0, 0)})
	const want = `{"id":"i","state":"dead","at":"1970-01-01T00:00:00.000000Z","lane":"bulk"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAppendedStringsComeBackThroughEncodingJSON covers the escaping with any string,
// bytes that are not UTF-8 included.
func TestAppendedStringsComeBackThroughEncodingJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")) + rapid.String().Draw(rt, "runes")
		raw := envelope.AppendStatus(nil, envelope.Status{ID: "i", Reason: s, Metadata: map[string]string{s: s}})
		var got struct {
			Reason   string            `json:"reason"`
			Metadata map[string]string `json:"metadata"`
		}
		if err := json.Unmarshal(raw, &got); err != nil {
			rt.Fatalf("%v: %s", err, raw)
		}
		quoted, err := json.Marshal(s)
		if err != nil {
			rt.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(quoted, &want); err != nil {
			rt.Fatal(err)
		}
		if got.Reason != want || got.Metadata[want] != want {
			rt.Fatalf("got %q, want %q", got.Reason, want)
		}
	})
}

func TestAppendStatusDoesNotAllocate(t *testing.T) {
	room := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { envelope.AppendStatus(room, accepted) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppendStatus(b *testing.B) {
	room := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		envelope.AppendStatus(room, accepted)
	}
}
