package envelope_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
	"dispatcher/selector"
)

const schemaFolder = "../../../../docs/schema/"

// published compiles a schema of docs/schema. It checks formats, too.
func published(t testing.TB, file string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile(schemaFolder + file)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate validates a document against the schema.
func validate(schema *jsonschema.Schema, raw []byte) error {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return schema.Validate(document)
}

func TestSchemaAndDecodeAgreeOnGoodEnvelopes(t *testing.T) {
	t.Parallel()
	schema := published(t, "envelope.schema.json")
	for name, raw := range goodEnvelopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := validate(schema, []byte(raw)); err != nil {
				t.Errorf("schema: %v", err)
			}
			if _, problem := envelope.Decode([]byte(raw), false); problem != nil {
				t.Errorf("Decode: %v", problem)
			}
		})
	}
}

func TestSchemaAndDecodeAgreeOnBadEnvelopes(t *testing.T) {
	t.Parallel()
	schema := published(t, "envelope.schema.json")
	for name, bad := range badEnvelopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := validate(schema, []byte(bad.raw)); err == nil && !bad.beyondSchema {
				t.Error("the schema accepts it")
			} else if err != nil && bad.beyondSchema {
				t.Errorf("the table says that the schema accepts it: %v", err)
			}
			if _, problem := envelope.Decode([]byte(bad.raw), false); problem == nil {
				t.Error("Decode accepts it")
			}
		})
	}
}

// TestGeneratedEnvelopesPassBothAndComeBackEqual draws valid messages: what Append writes is valid
// under the schema, and Decode returns the same message with the same digest.
func TestGeneratedEnvelopesPassBothAndComeBackEqual(t *testing.T) {
	t.Parallel()
	schema := published(t, "envelope.schema.json")
	tier.Check(t, func(rt *rapid.T) {
		want := messages().Draw(rt, "message")
		raw := want.Append(nil)
		if err := validate(schema, raw); err != nil {
			rt.Fatalf("schema: %v\n%s", err, raw)
		}
		got, problem := envelope.Decode(raw, false)
		if problem != nil {
			rt.Fatalf("Decode: %v\n%s", problem, raw)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("message changed in the round trip (-want +got):\n%s", diff)
		}
		if want.Digest() != got.Digest() {
			rt.Fatal("digest changed in the round trip")
		}
	})
}

// TestSchemaAndDecodeAgreeOnMutilatedEnvelopes replaces one value of a valid envelope by another
// JSON value.
func TestSchemaAndDecodeAgreeOnMutilatedEnvelopes(t *testing.T) {
	t.Parallel()
	schema := published(t, "envelope.schema.json")
	values := []string{
		`null`, `true`, `0`, `-1.5`, `1e400`, `""`, `" "`, `"x"`, `"\u0007"`, `"\u200b"`, `"é"`,
		`"+447700900123"`, `"+0123456789"`, `[]`, `{}`, `[{}]`, `{"":""}`, `{"k":"v"}`, `{"k":1}`,
		`{"k":null}`, `"0.05"`, `".5"`, `"5."`, `"1234567890123"`, `"0.0000001"`,
		`"2026-11-21T10:00:00Z"`, `"2026-11-21T10:00:60Z"`, `"2026-02-30T10:00:00Z"`,
		`"2026-11-21T10:00:00,5Z"`,
		`"2026-11-21T10:00:00+24:00"`, `"2026-11-21T10:00:00+23:60"`,
		`"2026-11-21T10:00:00.123456789-23:59"`, `"2026-11-21T10:00:00.1234567891Z"`,
		`"2026-11-21T1:00:00Z"`, `"2026-11-21T1:00:00+01:00"`, `"2026-11-21T1:00:00.5Z"`,
		`"1899-12-31T23:59:59Z"`, `"1900-01-01T00:00:00Z"`, `"2026-11-21t10:00:00z"`,
		`"0001-01-01T00:00:00Z"`, `"` + strings.Repeat("é", 65) + `"`,
		`"` + strings.Repeat("é", 64) + `"`, `"` + strings.Repeat("é", 257) + `"`,
		`[{"key":"k","operator":"equal","value":1}]`,
		`[{"key":"k","operator":"equal","value":1,"expires_after":"1m5ms"}]`,
		`[{"key":"k","operator":"equal","value":1,"expires_after":"5ms1m"}]`,
		`[{"key":"k","operator":"equal","value":1,"expires_after":[]}]`,
		`[{"key":"k","operator":"equal","value":1,"expires_after":" 1s"}]`,
		`[{"key":"k","operator":"equal","value":1,"expires_after":"٣s"}]`,
		`[{"key":"k","operator":"equals","value":1}]`, `[{"key":"k","operator":"equal","value":null}]`,
	}
	fields := []string{
		"id", "to", "from", "text", "tenant", "labels", "selectors", "send_at", "expires_at", "max_price",
		"metadata", "other",
	}
	for _, field := range fields {
		for _, value := range values {
			document := map[string]string{"id": `"i"`, "to": `"+447700900123"`, "text": `"t"`}
			document[field] = value
			var raw []byte
			for k, v := range document {
				raw = append(raw, `,"`+k+`":`+v...)
			}
			raw = append([]byte{'{'}, append(raw[1:], '}')...)
			schemaErr := validate(schema, raw)
			_, problem := envelope.Decode(raw, false)
			if (schemaErr == nil) != (problem == nil) {
				t.Errorf("%s\nschema: %v\nDecode: %v", raw, schemaErr, problem)
			}
		}
	}
}

func TestStatusEventsKeepTheirSchema(t *testing.T) {
	t.Parallel()
	schema := published(t, "status.schema.json")
	tier.Check(t, func(rt *rapid.T) {
		s := statuses().Draw(rt, "status")
		raw := envelope.Stamp(nil, envelope.AppendStatus(nil, s),
			rapid.Int64Range(1, 1<<53-1).Draw(rt, "seq"), s.At)
		if err := validate(schema, raw); err != nil {
			rt.Fatalf("%v\n%s", err, raw)
		}
	})
}

func TestStatusSchemaRefusesAnEventWithoutItsRequiredFields(t *testing.T) {
	t.Parallel()
	schema := published(t, "status.schema.json")
	for _, raw := range []string{
		`{}`,
		`{"id":"i","state":"accepted","seq":1,"at":"2026-11-21T10:00:00.000000Z"}`,
		`{"state":"accepted","seq":1,"at":"2026-11-21T10:00:00.000000Z","lane":"otp","topic":"sms.otp","partition":0,"offset":1}`,
		`{"state":"dead","seq":1,"at":"2026-11-21T10:00:00.000000Z","lane":"otp"}`,
		`{"id":"i","state":"sent","seq":1,"at":"2026-11-21T10:00:00.000000Z","lane":"otp"}`,
		`{"id":"i","state":"accepted","seq":1,"at":"2026-11-21T10:00:00Z","lane":"otp"}`,
		`{"id":"i","state":"accepted","at":"2026-11-21T10:00:00.000000Z","lane":"otp"}`,
		`{"id":"i","state":"accepted","seq":0,"at":"2026-11-21T10:00:00.000000Z","lane":"otp"}`,
	} {
		if validate(schema, []byte(raw)) == nil {
			t.Errorf("accepted: %s", raw)
		}
	}
}

// printables draws strings that the schema calls printable, including escapes and characters of
// other planes.
func printables(least, most int) *rapid.Generator[string] {
	runes := rapid.SampledFrom([]rune(`aZ09 _-"\/<>&+é漢字🙂` + "\u0301"))
	return rapid.StringOfN(runes, least, most, -1)
}

func values() *rapid.Generator[envelope.Value] {
	return rapid.OneOf(
		rapid.Map(rapid.String().Filter(shortText), selector.TextValue),
		rapid.Map(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), selector.NumberValue),
	)
}

func shortText(s string) bool { return len([]rune(s)) <= 256 }

func instants() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 1<<34).Draw(t, "seconds"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).UTC()
	})
}

func messages() *rapid.Generator[envelope.Message] {
	return rapid.Custom(func(t *rapid.T) envelope.Message {
		m := envelope.Message{
			ID:     printables(1, 64).Draw(t, "id"),
			To:     rapid.StringMatching(`\+[1-9][0-9]{7,14}`).Draw(t, "to"),
			From:   printables(0, 20).Draw(t, "from"),
			Text:   rapid.StringN(1, 300, -1).Draw(t, "text"),
			Tenant: printables(0, 64).Draw(t, "tenant"),
			Labels: rapid.MapOfN(printables(1, 64), values(), 0, 32).Draw(t, "labels"),
			Metadata: rapid.MapOfN(printables(1, 64), rapid.String().Filter(shortText), 0, 32).Draw(t,
				"metadata"),
			Selectors: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) envelope.Selector {
				return envelope.Selector{
					Key: printables(1, 64).Draw(t, "key"),
					Operator: rapid.SampledFrom([]envelope.Operator{
						selector.Equal, selector.NotEqual, selector.GreaterThan, selector.GreaterThanEqual,
						selector.LessThan, selector.LessThanEqual,
					}).Draw(t, "operator"),
					Value: values().Draw(t, "value"),
					ExpiresAfter: time.Duration(rapid.OneOf(rapid.Just(int64(0)),
						rapid.Int64Range(1, 4e12)).Draw(t, "expires_after")) * time.Millisecond,
				}
			}), 0, 32).Draw(t, "selectors"),
			MaxPrice: rapid.Ptr(rapid.Int64Range(0, 999_999_999_999_999_999), true).Draw(t, "max_price"),
		}
		if rapid.Bool().Draw(t, "scheduled") {
			m.SendAt = instants().Draw(t, "send_at")
		}
		if rapid.Bool().Draw(t, "expires") {
			m.ExpiresAt = m.SendAt.Add(time.Nanosecond)
			if m.SendAt.IsZero() {
				m.ExpiresAt = instants().Draw(t, "expires_at")
			}
		}
		return m
	})
}

func statuses() *rapid.Generator[envelope.Status] {
	states := []string{
		"scheduled", "waiting", "retry", "sending", "accepted", "delivered", "undelivered", "rejected",
		"failed", "unknown", "dead",
	}
	return rapid.Custom(func(t *rapid.T) envelope.Status {
		if rapid.IntRange(0, 4).Draw(t, "dead") == 0 {
			return envelope.Status{
				ID: printables(0, 64).Draw(t, "id"), State: "dead", At: instants().Draw(t, "at"), Lane: "otp",
				Reason:        "conflict",
				Detail:        rapid.String().Draw(t, "detail"),
				ConflictingID: printables(0, 64).Draw(t, "conflicting_id"),
				Position: &envelope.Position{
					Topic: printables(1, 20).Draw(t, "topic"), Partition: rapid.Int32Min(0).Draw(t, "partition"),
					Offset: rapid.Int64Min(0).Draw(t, "offset"),
				},
			}
		}
		return envelope.Status{
			ID:    printables(1, 64).Draw(t, "id"),
			State: rapid.SampledFrom(states).Draw(t, "state"),
			At: instants().Draw(t,
				"at").In(time.FixedZone("", rapid.IntRange(-50_000, 50_000).Draw(t, "zone"))),
			Lane: printables(1, 20).Draw(t, "lane"), Tenant: rapid.String().Draw(t, "tenant"),
			Route:   rapid.String().Draw(t, "route"),
			Channel: rapid.String().Draw(t, "channel"), Attempt: rapid.IntRange(0, 99).Draw(t, "attempt"),
			Reason: rapid.String().Draw(t, "reason"), Code: rapid.String().Draw(t, "code"),
			Reference:         rapid.String().Draw(t, "reference"),
			Segments:          rapid.IntRange(0, 10).Draw(t, "segments"),
			PartsAccepted:     rapid.IntRange(0, 9).Draw(t, "parts_accepted"),
			PossibleDuplicate: rapid.Bool().Draw(t, "possible_duplicate"),
			Metadata:          rapid.MapOfN(rapid.String(), rapid.String(), 0, 20).Draw(t, "metadata"),
		}
	})
}
