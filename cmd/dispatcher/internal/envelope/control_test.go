package envelope_test

import (
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

// TestControlRecordsAreStrict: as the schema says, where the record is one JSON value of a size
// that is read.
func TestControlRecordsAreStrict(t *testing.T) {
	t.Parallel()
	schema := published(t, "control.schema.json")
	for raw, want := range map[string]envelope.Code{
		`{"cancel":"order-1"}`:                                "",
		`{"cancel":"order-1","author":"shop","reason":"why"}`: "",
		``:                             envelope.BadJSON,
		`null`:                         envelope.BadID,
		`{"cancel":"order-1"`:          envelope.BadJSON,
		`{"cancel":"order-1"} x`:       envelope.BadJSON,
		`{"cancel":"a"}{"cancel":"b"}`: envelope.BadJSON,
		`{"cancel":7}`:                 envelope.BadField,
		`{"cancel":"a","resend":"a"}`:  envelope.BadField,
		`{"cancel":""}`:                envelope.BadID,
		`{"author":"shop"}`:            envelope.BadID,
		`{"cancel":"a\u0000b"}`:        envelope.BadID, // PostgreSQL cannot store it
		`{"cancel":"` + strings.Repeat("x", 65) + `"}`:                envelope.BadID,
		`{"cancel":"a","author":"\u0000"}`:                            envelope.BadField,
		`{"cancel":"a","reason":"\n"}`:                                envelope.BadField,
		`["cancel"]`:                                                  envelope.BadField,
		`{"cancel":"a","reason":"` + strings.Repeat("x", 257) + `"}`:  envelope.BadField,
		`{"cancel":"` + strings.Repeat("x", envelope.MaxBytes) + `"}`: envelope.TooLarge,
	} {
		c, problem := envelope.DecodeControl([]byte(raw))
		got := envelope.Code("")
		if problem != nil {
			got = problem.Code
		}
		if got != want || (got == "") != (c.Cancel == "order-1") {
			t.Errorf("%.60s: %q, want %q; %+v", raw, got, want, c)
		}
		if err := validate(schema, []byte(raw)); (err == nil) != (want == "") {
			t.Errorf("%.60s: want %q, and the schema says %v", raw, want, err)
		}
	}
}
