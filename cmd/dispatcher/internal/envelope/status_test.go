package envelope_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
)

var accepted = envelope.Status{
	ID: "order-7731-otp", State: "accepted",
	At: time.Date(2026, 11, 21, 11, 0, 1, 234_567_890, time.FixedZone("", 3600)), Lane: "otp",
	Tenant: "shop", Route: "default", Channel: "a", Attempt: 2, Reason: "fallback",
	Detail: "to is not a number", Cause: "absent", Code: "0x00000000", Reference: "r1 r2", Segments: 2,
	PartsAccepted:     1,
	PossibleDuplicate: true, ConflictingID: "other",
	Position: &envelope.Position{Topic: "sms.otp", Offset: 17},
	Metadata: map[string]string{"order": "7731", "basket": "a\"b"},
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
	got := envelope.AppendStatus(nil,
		envelope.Status{ID: "i", State: "dead", Lane: "bulk", At: time.Unix(0, 0)})
	const want = `{"id":"i","state":"dead","at":"1970-01-01T00:00:00.000000Z","lane":"bulk"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAppendedStringsComeBackThroughEncodingJSON covers escaping of any string, including bytes
// that are not UTF-8.
func TestAppendedStringsComeBackThroughEncodingJSON(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(rt *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")) + rapid.String().Draw(rt, "runes")
		raw := envelope.AppendStatus(nil,
			envelope.Status{ID: "i", Reason: s, Metadata: map[string]string{s: s}})
		var got struct {
			Reason   string            `json:"reason"`
			Metadata map[string]string `json:"metadata"`
		}
		if err := json.Unmarshal(raw, &got); err != nil {
			rt.Fatalf("%v: got %s", err, raw)
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

// TestStampGivesAnEventItsNumberAndTimeAndLeavesTheRest covers strings that look like the field
// that Stamp searches for.
func TestStampGivesAnEventItsNumberAndTimeAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(rt *rapid.T) {
		s := statuses().Draw(rt, "status")
		tricky := rapid.SampledFrom([]string{`,"at":"`, `","at":"2026`, `at`, `{"at":"x"}`, s.ID})
		s.ID, s.Route = tricky.Draw(rt, "id"), tricky.Draw(rt, "route")
		s.Metadata = map[string]string{"at": tricky.Draw(rt, "metadata"), `,"at":"`: "x"}
		at, seq := instants().Draw(rt, "final"), rapid.Int64Range(1, 1<<53-1).Draw(rt, "seq")
		raw := envelope.AppendStatus(nil, s)
		var want, got map[string]any
		stamped := envelope.Stamp([]byte("x"), raw, seq, at)
		for into, text := range map[*map[string]any][]byte{&want: raw, &got: stamped[1:]} {
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			if err := d.Decode(into); err != nil || stamped[0] != 'x' {
				rt.Fatalf("%v: got %s", err, text)
			}
		}
		if got["seq"] != json.Number(strconv.FormatInt(seq, 10)) ||
			got["at"] != at.Format("2006-01-02T15:04:05.000000Z") {
			rt.Fatalf("seq %d at %s: %s", seq, at, stamped)
		}
		delete(got, "seq")
		delete(got, "at")
		delete(want, "at")
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// TestTimesHaveSixDigits compares with the layout that package time would use.
func TestTimesHaveSixDigits(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(rt *rapid.T) {
		at := time.Unix(rapid.Int64Range(-1<<33, 1<<37).Draw(rt, "seconds"),
			rapid.Int64Range(0, 1e9-1).Draw(rt, "nanoseconds"))
		event := string(envelope.AppendStatus(nil, envelope.Status{At: at}))
		want := at.UTC().Format(`"at":"2006-01-02T15:04:05.000000Z07:00"`)
		if !strings.Contains(event, want) {
			rt.Fatalf("%s has not %s", event, want)
		}
	})
}

func TestStampLeavesWhatIsNoEventAsItIs(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "{}", `{"id":"i"}`, `{"id":"i","at":5}`, `{"id":"i","at":"20`} {
		if got := string(envelope.Stamp(nil, []byte(raw), 7, time.Unix(0, 0))); got != raw {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

func TestAppendStatusDoesNotAllocate(t *testing.T) {
	room, event := make([]byte, 0, 1024), envelope.AppendStatus(nil, accepted)
	if n := testing.AllocsPerRun(100, func() { envelope.AppendStatus(room, accepted) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { envelope.Stamp(room, event, 1<<40, accepted.At) }); n !=
		0 {
		t.Errorf("%v allocations to give it its number", n)
	}
}

func BenchmarkAppendStatus(b *testing.B) {
	room := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		envelope.AppendStatus(room, accepted)
	}
}
