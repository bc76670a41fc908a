package envelope_test

import (
	"errors"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

func TestEditChangesOnlyTheGivenFields(t *testing.T) {
	t.Parallel()
	set := func(field, value string) envelope.Change {
		return envelope.Change{Field: field, Value: value}
	}
	for name, c := range map[string]struct {
		raw     string
		changes []envelope.Change
		want    string
	}{
		"nothing":    {` {"id": "m", "n": [1, 2]}`, nil, `{"id":"m","n":[1, 2]}`},
		"a value":    {`{"id":"m","to":7,"text":"x"}`, []envelope.Change{set("to", "+1")}, `{"id":"m","to":"+1","text":"x"}`},
		"a new one":  {`{}`, []envelope.Change{set("id", `a"b`), set("text", "x")}, `{"id":"a\"b","text":"x"}`},
		"an object":  {`{}`, []envelope.Change{set("metadata", `{"a":"b"}`)}, `{"metadata":{"a":"b"}}`},
		"one of two": {`{"to":"1","id":"m","to":"2"}`, []envelope.Change{set("to", "3")}, `{"to":"3","id":"m"}`},
		"left out": {
			`{"colour":"blue","id":"m"}`,
			[]envelope.Change{{Field: "colour", Remove: true}},
			`{"id":"m"}`,
		},
		"not there": {`{"id":"m"}`, []envelope.Change{{Field: "from", Remove: true}}, `{"id":"m"}`},
	} {
		got, err := envelope.Edit([]byte(c.raw), c.changes...)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
}

func TestEditRefusesWhatItCannotChange(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "[]", `{"id":`, "\xff", "7"} {
		if _, err := envelope.Edit([]byte(raw)); !errors.Is(err, envelope.ErrNoObject) {
			t.Errorf("%q: got error %v", raw, err)
		}
	}
	for want, changes := range map[string][]envelope.Change{
		`no field "colour"`:    {{Field: "colour", Value: "+447700900123"}},
		"metadata is not JSON": {{Field: "metadata", Value: "+447700900123"}},
		"to is changed twice":  {{Field: "to", Remove: true}, {Field: "to", Value: "+447700900123"}},
	} {
		_, err := envelope.Edit([]byte(`{}`), changes...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "7700") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
