package envelope_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/selector"
)

const (
	number = "+447700900123"
	secret = "Your code is 123456"
)

// with appends members to the required ones.
func with(members string) string {
	return `{"id":"i","to":"` + number + `","text":"` + secret + `",` + members + `}`
}

var goodEnvelopes = map[string]string{
	"typical":                typical,
	"required fields only":   plain,
	"white space":            " \n\t{ \"id\" : \"i\" ,\r\n\"to\":\"+12345678\", \"text\" : \"x\" } \n",
	"longest number":         `{"id":"i","to":"+123456789012345","text":"x"}`,
	"id of 64 characters":    `{"id":"` + strings.Repeat("é", 64) + `","to":"+12345678","text":"x"}`,
	"escaped keys":           `{"\u0069d":"escaped","to":"+12345678","text":"x"}`,
	"escapes and surrogates": `{"id":"i","to":"+12345678","text":"\u00e9\n\"\\\/\ud83d\ude42"}`,
	"brackets in strings":    with(`"metadata":{"a":"}]\"{[","b":"\\"}`),
	"any plane":              with(`"tenant":"é漢字🙂\u0301","from":"\ud83d\ude42"`),
	"not assigned yet":       with(`"tenant":"\u0378"`),
	"null is absent": with(
		`"from":null,"tenant":null,"labels":null,"selectors":null,"send_at":null,"expires_at":null,"max_price":null,"metadata":null`),
	"empty is allowed":    with(`"from":"","tenant":"","labels":{},"selectors":[],"metadata":{}`),
	"numbers as labels":   with(`"labels":{"a":1,"b":-0.5e3,"c":0}`),
	"time with an offset": with(`"send_at":"2026-11-21T10:00:00.123456789+05:30"`),
	"whole price":         with(`"max_price":"1"`),
	"largest price":       with(`"max_price":"999999999999.999999"`),
	"selector for a while": with(
		`"selectors":[{"key":"k","operator":"equal","value":1,"expires_after":"30s"}]`),
	"span of all units": with(
		`"selectors":[{"key":"k","operator":"equal","value":1,"expires_after":"1h2m3s4ms"}]`),
	"longest span": with(
		`"selectors":[{"key":"k","operator":"equal","value":1,"expires_after":"999999h"}]`),
	"seconds as a number": with(
		`"selectors":[{"key":"k","operator":"equal","value":1,"expires_after":0.001},{"key":"k","operator":"equal","value":1,"expires_after":4e9}]`),
	"selector for ever": with(
		`"selectors":[{"key":"k","operator":"equal","value":2,"expires_after":null}]`),
	"one key, two selectors": with(
		`"selectors":[{"key":"k","operator":"greaterThan","value":1},{"key":"k","operator":"lessThan","value":9},{"key":"k","operator":"lessThan","value":9}]`),
	"thirty-two labels": with(`"labels":{` + entries(32) + `}`),
}

type badEnvelope struct {
	raw  string
	code envelope.Code
	id   string // that Decode returns in spite of the problem
	// beyondSchema marks problems that no schema can express.
	beyondSchema bool
}

var badEnvelopes = map[string]badEnvelope{
	"nothing":       {raw: "", code: envelope.BadJSON},
	"not JSON":      {raw: "hello", code: envelope.BadJSON},
	"cut off":       {raw: plain[:len(plain)-1], code: envelope.BadJSON},
	"trailing data": {raw: plain + "{}", code: envelope.BadJSON},
	"an array":      {raw: "[" + plain + "]", code: envelope.BadJSON},
	"null":          {raw: "null", code: envelope.BadJSON},
	"not UTF-8": {
		raw: `{"id":"i","to":"+12345678","text":"` + "\xff" + `"}`, code: envelope.BadJSON,
		beyondSchema: true,
	},
	"over 64 KiB": {
		raw:  `{"id":"i","to":"+12345678","text":"` + strings.Repeat("x", envelope.MaxBytes) + `"}`,
		code: envelope.TooLarge, id: "i", beyondSchema: true,
	},
	"over 64 KiB, not JSON": {raw: strings.Repeat("x", envelope.MaxBytes+1), code: envelope.TooLarge},
	"unknown field":         {raw: with(`"txet":1`), code: envelope.UnknownField, id: "i"},
	"field in capitals":     {raw: with(`"TENANT":"x"`), code: envelope.UnknownField, id: "i"},
	"unknown before id": {
		raw: `{"x":{"id":"j"},"id":"i","to":"+12345678","text":"x"}`, code: envelope.UnknownField,
		id: "i",
	},
	"unknown in selector": {
		raw:  with(`"selectors":[{"key":"k","operator":"equal","value":1,"x":1}]`),
		code: envelope.UnknownField, id: "i",
	},
	"id twice": {
		raw: with(`"id":"j"`), code: envelope.DuplicateField, beyondSchema: true,
	},
	"number twice": {
		raw: with(`"to":"+12345678"`), code: envelope.DuplicateField, id: "i", beyondSchema: true,
	},
	"label twice": {
		raw: with(`"labels":{"a":1,"a":2}`), code: envelope.DuplicateField, id: "i", beyondSchema: true,
	},
	"metadata twice": {
		raw: with(`"metadata":{"a":"1","a":"2"}`), code: envelope.DuplicateField, id: "i",
		beyondSchema: true,
	},
	"selector key twice": {
		raw:  with(`"selectors":[{"key":"a","key":"b","operator":"equal","value":1}]`),
		code: envelope.DuplicateField, id: "i", beyondSchema: true,
	},
	"no id":    {raw: `{"to":"+12345678","text":"x"}`, code: envelope.BadID},
	"empty id": {raw: `{"id":"","to":"+12345678","text":"x"}`, code: envelope.BadID},
	"id of 65 characters": {
		raw: `{"id":"` + strings.Repeat("x", 65) + `","to":"+12345678","text":"x"}`, code: envelope.BadID,
	},
	"control in id": {
		raw: `{"id":"a\u0000b","to":"+12345678","text":"x"}`, code: envelope.BadID,
	},
	"id is a number": {raw: `{"id":7,"to":"+12345678","text":"x"}`, code: envelope.BadID},
	"id is null":     {raw: `{"id":null,"to":"+12345678","text":"x"}`, code: envelope.BadID},
	"no number":      {raw: `{"id":"i","text":"x"}`, code: envelope.BadNumber, id: "i"},
	"number without plus": {
		raw: `{"id":"i","to":"12345678","text":"x"}`, code: envelope.BadNumber, id: "i",
	},
	"number with a zero": {
		raw: `{"id":"i","to":"+012345678","text":"x"}`, code: envelope.BadNumber, id: "i",
	},
	"number too short": {
		raw: `{"id":"i","to":"+1234567","text":"x"}`, code: envelope.BadNumber, id: "i",
	},
	"number too long": {
		raw: `{"id":"i","to":"+1234567890123456","text":"x"}`, code: envelope.BadNumber, id: "i",
	},
	"number with a space": {
		raw: `{"id":"i","to":"+1234 5678","text":"x"}`, code: envelope.BadNumber, id: "i",
	},
	"number of Arabic": {
		raw: `{"id":"i","to":"+١٢٣٤","text":"x"}`, code: envelope.BadNumber, id: "i",
	},
	"bad number before id": {
		raw: `{"to":"1","text":"x","id":"i"}`, code: envelope.BadNumber, id: "i",
	},
	"line behind number": {
		raw: `{"id":"i","to":"+12345678\n","text":"x"}`, code: envelope.BadNumber, id: "i",
	},
	"line behind price": {raw: with(`"max_price":"1\n"`), code: envelope.BadField, id: "i"},
	"line behind time": {
		raw: with(`"send_at":"2026-11-21T10:00:00Z\n"`), code: envelope.BadField, id: "i",
	},
	"line behind span": {
		raw: inSelector(`"expires_after":"1s\n"`), code: envelope.BadField, id: "i",
	},
	"line behind sender": {raw: with(`"from":"ACME\n"`), code: envelope.BadField, id: "i"},
	"direction mark in id": {
		raw: `{"id":"a\u202eb","to":"+12345678","text":"x"}`, code: envelope.BadID,
	},
	"tag in tenant": {raw: with(`"tenant":"\udb40\udc41"`), code: envelope.BadField, id: "i"},
	"no text":       {raw: `{"id":"i","to":"+12345678"}`, code: envelope.NoText, id: "i"},
	"empty text": {
		raw: `{"id":"i","to":"+12345678","text":""}`, code: envelope.NoText, id: "i",
	},
	"text is an object": {
		raw: `{"id":"i","to":"+12345678","text":{}}`, code: envelope.BadField, id: "i",
	},
	"long sender": {
		raw: with(`"from":"` + strings.Repeat("x", 21) + `"`), code: envelope.BadField, id: "i",
	},
	"long tenant": {
		raw: with(`"tenant":"` + strings.Repeat("x", 65) + `"`), code: envelope.BadField, id: "i",
	},
	"labels is an array": {raw: with(`"labels":[]`), code: envelope.BadField, id: "i"},
	"label is true":      {raw: with(`"labels":{"a":true}`), code: envelope.BadField, id: "i"},
	"label is null":      {raw: with(`"labels":{"a":null}`), code: envelope.BadField, id: "i"},
	"label is infinite":  {raw: with(`"labels":{"a":1e400}`), code: envelope.BadField, id: "i"},
	"long label": {
		raw: with(`"labels":{"a":"` + strings.Repeat("x", 257) + `"}`), code: envelope.BadField, id: "i",
	},
	"label without key": {raw: with(`"labels":{"":1}`), code: envelope.BadField, id: "i"},
	"33 labels": {
		raw: with(`"labels":{` + entries(33) + `}`), code: envelope.BadField, id: "i",
	},
	"33 metadata": {
		raw: with(`"metadata":{` + entries(33) + `}`), code: envelope.BadField, id: "i",
	},
	"33 selectors": {
		raw: with(`"selectors":[` + strings.Repeat(`{"key":"k","operator":"equal","value":1},`, 32) +
			`{"key":"k","operator":"equal","value":1}]`), code: envelope.BadField, id: "i",
	},
	"selector is a string": {raw: with(`"selectors":["k"]`), code: envelope.BadField, id: "i"},
	"selectors an object":  {raw: with(`"selectors":{}`), code: envelope.BadField, id: "i"},
	"selector lacks value": {
		raw: with(`"selectors":[{"key":"k","operator":"equal"}]`), code: envelope.BadField, id: "i",
	},
	"unknown operator": {
		raw: with(`"selectors":[{"key":"k","operator":"like","value":1}]`), code: envelope.BadField,
		id: "i",
	},
	"span of nothing": {raw: inSelector(`"expires_after":""`), code: envelope.BadField, id: "i"},
	"span without unit": {
		raw: inSelector(`"expires_after":"30"`), code: envelope.BadField, id: "i",
	},
	"span of zero": {
		raw: inSelector(`"expires_after":"0h0s"`), code: envelope.BadField, id: "i",
	},
	"span is negative": {
		raw: inSelector(`"expires_after":"-1s"`), code: envelope.BadField, id: "i",
	},
	"span in days": {
		raw: inSelector(`"expires_after":"1d"`), code: envelope.BadField, id: "i",
	},
	"span out of order": {
		raw: inSelector(`"expires_after":"1s1m"`), code: envelope.BadField, id: "i",
	},
	"span with a fraction": {
		raw: inSelector(`"expires_after":"1.5s"`), code: envelope.BadField, id: "i",
	},
	"span of 7 digits": {
		raw: inSelector(`"expires_after":"1000000h"`), code: envelope.BadField, id: "i",
	},
	"span unit twice": {
		raw: inSelector(`"expires_after":"1s1s"`), code: envelope.BadField, id: "i",
	},
	"zero seconds": {raw: inSelector(`"expires_after":0`), code: envelope.BadField, id: "i"},
	"below a millisecond": {
		raw: inSelector(`"expires_after":0.0009`), code: envelope.BadField, id: "i",
	},
	"seconds beyond reason": {
		raw: inSelector(`"expires_after":4000000001`), code: envelope.BadField, id: "i",
	},
	"span is true": {
		raw: inSelector(`"expires_after":true`), code: envelope.BadField, id: "i",
	},
	"span twice": {
		raw: inSelector(`"expires_after":1,"expires_after":2`), code: envelope.DuplicateField, id: "i",
		beyondSchema: true,
	},
	"span without operator": {
		raw: with(`"selectors":[{"key":"k","value":1,"expires_after":1}]`), code: envelope.BadField,
		id: "i",
	},
	"time without zone": {
		raw: with(`"send_at":"2026-11-21T10:00:00"`), code: envelope.BadField, id: "i",
	},
	"time as a number": {raw: with(`"expires_at":1795255200`), code: envelope.BadField, id: "i"},
	"day without time": {raw: with(`"expires_at":"2026-11-21"`), code: envelope.BadField, id: "i"},
	"expires before sent": {
		raw:  with(`"send_at":"2026-11-21T10:00:00Z","expires_at":"2026-11-21T10:00:00Z"`),
		code: envelope.BadField, id: "i", beyondSchema: true,
	},
	"price as a number":    {raw: with(`"max_price":0.05`), code: envelope.BadField, id: "i"},
	"price of 7 decimals":  {raw: with(`"max_price":"0.0500000"`), code: envelope.BadField, id: "i"},
	"negative price":       {raw: with(`"max_price":"-1"`), code: envelope.BadField, id: "i"},
	"price with exponent":  {raw: with(`"max_price":"1e3"`), code: envelope.BadField, id: "i"},
	"price without digits": {raw: with(`"max_price":"."`), code: envelope.BadField, id: "i"},
	"metadata is a number": {raw: with(`"metadata":{"order":7731}`), code: envelope.BadField, id: "i"},
	"metadata is a string": {raw: with(`"metadata":"x"`), code: envelope.BadField, id: "i"},
}

// inSelector appends members to the required ones of a selector.
func inSelector(members string) string {
	return with(`"selectors":[{"key":"k","operator":"equal","value":1,` + members + `}]`)
}

// entries returns n distinct members with string values.
func entries(n int) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"k%d":"v"`, i))
	}
	return strings.Join(members, ",")
}

func TestDecodeReadsEveryField(t *testing.T) {
	t.Parallel()
	got, problem := envelope.Decode([]byte(typical), false)
	if problem != nil {
		t.Fatal(problem)
	}
	price := int64(50_000)
	want := envelope.Message{
		ID: "order-7731-otp", To: number, From: "ACME", Text: secret, Tenant: "shop",
		Labels: map[string]envelope.Value{"language": selector.TextValue("en")},
		Selectors: []envelope.Selector{
			{Key: "quality", Operator: selector.GreaterThanEqual, Value: selector.NumberValue(5)},
		},
		SendAt:    time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC),
		ExpiresAt: time.Date(2026, 11, 21, 10, 10, 0, 0, time.UTC),
		MaxPrice:  &price,
		Metadata:  map[string]string{"order": "7731"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeNamesTheFirstProblemAndKeepsAGoodID(t *testing.T) {
	t.Parallel()
	for name, bad := range badEnvelopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := envelope.Decode([]byte(bad.raw), false)
			if problem == nil {
				t.Fatal("the document was accepted")
			}
			if problem.Code != bad.code {
				t.Errorf("code %s, want %s", problem, bad.code)
			}
			if diff := cmp.Diff(envelope.Message{ID: bad.id}, got); diff != "" {
				t.Errorf("not only the id is set (-want +got):\n%s", diff)
			}
			if problem.Detail == "" || len(problem.Detail) > 120 {
				t.Errorf("detail is not a bounded sentence: %q", problem.Detail)
			}
		})
	}
}

func TestDecodeAcceptsUnknownFieldsIfAllowed(t *testing.T) {
	t.Parallel()
	raw := with(`"x":{"id":"j","deep":[[{"a":"]}"}],1.5,true]},"y":null,"selectors":[{"key":"k","operator":"equal","value":1,"z":[]}]`)
	got, problem := envelope.Decode([]byte(raw), true)
	if problem != nil {
		t.Fatal(problem)
	}
	if got.ID != "i" || len(got.Selectors) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestProblemsNeverRepeatNumberOrText(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"number as a key":       with(`"` + number + `":1`),
		"text as a key":         with(`"` + secret + `":1`),
		"text as a label":       with(`"labels":{"` + secret + `":true}`),
		"number as an id":       `{"id":"` + number + `\n","to":"x","text":"x"}`,
		"number with a letter":  `{"id":"i","to":"` + number + `x","text":"` + secret + `"}`,
		"text as a sender":      with(`"from":"` + secret + secret + `"`),
		"text as an operator":   with(`"selectors":[{"key":"k","operator":"` + secret + `","value":1}]`),
		"number cut off":        `{"id":"i","to":"` + number,
		"number as a timestamp": with(`"send_at":"` + number + `"`),
	} {
		_, problem := envelope.Decode([]byte(raw), false)
		if problem == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if s := problem.String(); strings.Contains(s, "7700900123") || strings.Contains(s, "123456") {
			t.Errorf("%s: got %s, want no %q in it and no %q in it", name, s, "7700900123", "123456")
		}
	}
}

func TestDecodeNeitherKeepsNorChangesTheRecord(t *testing.T) {
	t.Parallel()
	raw := []byte(typical)
	m, problem := envelope.Decode(raw, false)
	if problem != nil {
		t.Fatal(problem)
	}
	if string(raw) != typical {
		t.Error("the record was changed")
	}
	clear(raw)
	if m.Text != secret {
		t.Error("the message changed with the record's bytes")
	}
}

func TestSpansAreReadToTheMillisecond(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		`"30s"`: 30 * time.Second, `"90m"`: 90 * time.Minute, `"1h30m"`: 90 * time.Minute,
		`"250ms"`: 250 * time.Millisecond, `"1m1ms"`: time.Minute + time.Millisecond,
		`"000s1ms"`: time.Millisecond, `30`: 30 * time.Second, `0.25`: 250 * time.Millisecond,
		`1.0004`: time.Second, `1e3`: 1000 * time.Second,
	} {
		m, problem := envelope.Decode([]byte(inSelector(`"expires_after":`+value)), false)
		if problem != nil || m.Selectors[0].ExpiresAfter != want {
			t.Errorf("%s: %+v, %v; want %s", value, m.Selectors, problem, want)
		}
	}
}

func TestDigestIgnoresFormAndSeesContent(t *testing.T) {
	t.Parallel()
	digest := func(raw string) int64 {
		m, problem := envelope.Decode([]byte(raw), false)
		if problem != nil {
			t.Fatalf("%v: got %s", problem, raw)
		}
		return m.Digest()
	}
	same := [][2]string{
		{with(`"labels":{"a":1,"b":"x"}`), with(`"labels":{"b":"x","a":1.0}`)},
		{with(`"send_at":"2026-11-21T10:00:00Z"`), with(`"send_at":"2026-11-21T11:00:00+01:00"`)},
		{with(`"tenant":null`), with(`"from":""`)},
		{with(`"max_price":"0.05"`), with(`"max_price":"0.050"`)},
		{with(`"labels":{"a":-0}`), with(`"labels":{"a":0}`)},
		{inSelector(`"expires_after":"1m30s"`), inSelector(`"expires_after":90`)},
		{
			inSelector(`"expires_after":null`),
			with(`"selectors":[{"key":"k","operator":"equal","value":1}]`),
		},
	}
	for _, pair := range same {
		if digest(pair[0]) != digest(pair[1]) {
			t.Errorf("differ:\n%s\n%s", pair[0], pair[1])
		}
	}
	distinct := slices.Concat(slices.Sorted(maps.Values(goodEnvelopes)), []string{
		with(`"from":"ab"`), with(`"tenant":"ab"`), with(`"from":"a","tenant":"b"`),
		with(`"labels":{"a":"1"}`), with(`"labels":{"a":1}`), with(`"metadata":{"a":"1"}`),
		with(`"selectors":[{"key":"a","operator":"equal","value":1}]`),
		with(`"selectors":[{"key":"a","operator":"equal","value":"1"}]`),
		with(`"send_at":"2026-11-21T10:00:00Z"`), with(`"expires_at":"2026-11-21T10:00:00Z"`),
		with(`"max_price":"0"`),
		inSelector(`"expires_after":1`), inSelector(`"expires_after":2`),
	})
	seen := map[int64]string{}
	for _, raw := range distinct {
		if raw == goodEnvelopes["null is absent"] || raw == goodEnvelopes["empty is allowed"] {
			continue // these two are the same message
		}
		d := digest(raw)
		if other, ok := seen[d]; ok {
			t.Errorf("same digest:\n%s\n%s", raw, other)
		}
		seen[d] = raw
	}
}

// TestDigestNeverChanges fixes the canonical form, because digests are stored.
func TestDigestNeverChanges(t *testing.T) {
	t.Parallel()
	m, _ := envelope.Decode([]byte(typical), false)
	if got, want := m.Digest(), int64(5212216474049026898); got != want {
		t.Errorf("digest %d, want %d", got, want)
	}
}
