package envelope_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
)

var update = flag.Bool("update", false, "write testdata/documents.jsonl anew")

// documentsFile holds the envelopes of the tables, one a line, for validators in other languages:
// section clients of .ci/run checks that they give the same answers.
const documentsFile = "testdata/documents.jsonl"

// document is one line of it. The text is itself JSON, in any form.
type document struct {
	Name  string `json:"name"`
	Valid bool   `json:"valid"` // by the schema
	Text  string `json:"text"`
}

// longestDocument excludes documents that are wrong only by their size.
const longestDocument = 8 << 10

func TestDocumentsOfOtherValidatorsAreThoseOfTheTables(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	put := func(name string, valid bool, text string) {
		if !json.Valid([]byte(text)) || len(text) > longestDocument || !utf8.ValidString(text) {
			return
		}
		if err := e.Encode(document{name, valid, text}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(goodEnvelopes)) {
		put(name, true, goodEnvelopes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(badEnvelopes)) {
		put(name, badEnvelopes[name].beyondSchema, badEnvelopes[name].raw)
	}
	if *update {
		if err := os.WriteFile(documentsFile, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(documentsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the tables say; run this test with -update", documentsFile)
	}
}

// TestSchemaAndDecodeAgreeOnEveryCharacter tries each character in an id and, escaped, in a sender.
func TestSchemaAndDecodeAgreeOnEveryCharacter(t *testing.T) {
	t.Parallel()
	schema := published(t, "envelope.schema.json")
	for c := rune(0); c <= unicode.MaxRune; c++ {
		if !utf8.ValidRune(c) {
			continue
		}
		if c > 0x20000 && c < 0xe0000 && c%251 != 0 {
			continue // planes with letters only
		}
		if c > 0x3000 && c%tier.Size[rune](17, 1) != 0 {
			continue
		}
		id, _ := json.Marshal("x" + string(c)) // cannot fail for a string
		raw := fmt.Appendf(nil, `{"id":%s,"to":"+447700900123","text":"t"}`, id)
		schemaErr := validate(schema, raw)
		_, problem := envelope.Decode(raw, false)
		if (schemaErr == nil) != (problem == nil) {
			t.Fatalf("%U: schema: %v, Decode: %v", c, schemaErr, problem)
		}
		assigned := unicode.In(c, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z,
			unicode.Cc, unicode.Cf, unicode.Co)
		if assigned && unicode.IsPrint(c) != (problem == nil) {
			t.Fatalf("%U: Unicode says %v, Decode %v", c, unicode.IsPrint(c), problem)
		}
	}
}

// FuzzSchemaAndDecodeAgree compares both on documents that are in no table.
func FuzzSchemaAndDecodeAgree(f *testing.F) {
	for _, raw := range goodEnvelopes {
		f.Add([]byte(raw))
	}
	for _, bad := range badEnvelopes {
		f.Add([]byte(bad.raw))
	}
	f.Add([]byte(with(`"from":"a\n"`)))
	f.Add([]byte(`{"id":"i","to":"+12345678\n","text":"x"}`))
	f.Add([]byte(with(`"max_price":"1\n"`)))
	f.Add([]byte(with(`"send_at":"2026-11-21T10:00:00Z\n"`)))
	f.Add([]byte(inSelector(`"expires_after":"1s\n"`)))
	c := published(f, "envelope.schema.json")
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, problem := envelope.Decode(raw, false)
		schemaErr := validate(c, raw)
		switch {
		case problem == nil && schemaErr != nil:
			t.Errorf("Decode accepts, the schema does not: %v\n%q", schemaErr, raw)
		case problem != nil && schemaErr == nil && !beyondSchema(problem, raw):
			t.Errorf("the schema accepts, Decode does not: %v\n%q", problem, raw)
		}
	})
}

// beyondSchema reports problems that no schema can express.
func beyondSchema(p *envelope.Problem, raw []byte) bool {
	return p.Code == envelope.DuplicateField || p.Code == envelope.TooLarge || !utf8.Valid(raw) ||
		strings.Contains(p.Detail, "after send_at") || loneSurrogate(raw) ||
		repeatsKey(json.NewDecoder(bytes.NewReader(raw)))
}

// repeatsKey reports whether the next value of d has an object with a repeated key.
func repeatsKey(d *json.Decoder) bool {
	opening, _ := d.Token() // cannot fail: the schema accepts the document
	repeated, keys := false, map[json.Token]bool{}
	for ; (opening == json.Delim('{') || opening == json.Delim('[')) &&
		d.More(); repeated = repeatsKey(d) || repeated {
		if opening == json.Delim('{') {
			key, _ := d.Token()
			repeated = repeated || keys[key]
			keys[key] = true
		}
	}
	if opening == json.Delim('{') || opening == json.Delim('[') {
		_, _ = d.Token() // its end
	}
	return repeated
}

// loneSurrogate reports an escaped half of a surrogate pair, which JSON libraries read in different
// ways.
func loneSurrogate(raw []byte) bool { return bytes.Contains(bytes.ToLower(raw), []byte(`\ud`)) }
