package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"dispatcher/selector"
)

// draft is a message as a person writes it, in flags or in a row of a CSV file: names
// of envelope fields and their values as text. It becomes JSON, and whether that is a
// good envelope is for envelope.Decode to say.
type draft struct {
	fields    map[string]string
	labels    map[string]any
	selectors []draftSelector
	metadata  map[string]string
}

type draftSelector struct {
	Key      string `json:"key"`
	Operator string `json:"operator"`
	Value    any    `json:"value"`
}

// draftFields are the fields of an envelope that are plain strings.
var draftFields = []string{"id", "to", "from", "text", "tenant", "send_at", "expires_at", "max_price"}

func newDraft() *draft {
	return &draft{fields: map[string]string{}, labels: map[string]any{}, metadata: map[string]string{}}
}

// set gives one named value. An empty value is an absent field. Errors never repeat it.
func (d *draft) set(name, value string) error {
	if !utf8.ValidString(value) {
		return fmt.Errorf("%s is not UTF-8 text", name)
	}
	if value == "" {
		return nil
	}
	if key, ok := strings.CutPrefix(name, "label."); ok {
		d.labels[key] = literal(value)
		return nil
	}
	if key, ok := strings.CutPrefix(name, "metadata."); ok {
		d.metadata[key] = value
		return nil
	}
	if name == "selectors" {
		return d.addSelectors(value)
	}
	d.fields[name] = value
	return nil
}

// addSelectors reads one or several "key operator value", separated by semicolons.
func (d *draft) addSelectors(text string) error {
	for one := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(one) == "" {
			continue
		}
		key, rest, _ := strings.Cut(strings.TrimSpace(one), " ")
		operator, value, ok := strings.Cut(strings.TrimSpace(rest), " ")
		if !ok || !selector.Operator(operator).Valid() {
			return errors.New(`a selector is not "key operator value" with one of the operators ` + operators)
		}
		d.selectors = append(d.selectors, draftSelector{key, operator, literal(strings.TrimSpace(value))})
	}
	return nil
}

const operators = "equal, notEqual, greaterThan, greaterThanEqual, lessThan, lessThanEqual"

// literal tells numbers from texts: what is a JSON number is a number, and what stands
// in double quotes is a text even if it looks like one.
func literal(value string) any {
	if inner, ok := strings.CutPrefix(value, `"`); ok && strings.HasSuffix(inner, `"`) {
		return strings.TrimSuffix(inner, `"`)
	}
	if c := value[0]; (c == '-' || c >= '0' && c <= '9') && json.Valid([]byte(value)) {
		return json.Number(value)
	}
	return value
}

// json is the draft as an envelope.
func (d *draft) json() ([]byte, error) {
	members := make(map[string]any, len(d.fields)+3)
	for name, value := range d.fields {
		members[name] = value
	}
	if len(d.labels) > 0 {
		members["labels"] = d.labels
	}
	if len(d.selectors) > 0 {
		members["selectors"] = d.selectors
	}
	if len(d.metadata) > 0 {
		members["metadata"] = d.metadata
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(members); err != nil {
		return nil, fmt.Errorf("write envelope: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}
