package envelope

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Change is one change of a record: a field is set or removed.
type Change struct {
	Field  string
	Value  string // as the field is written; JSON for labels, selectors and metadata
	Remove bool
}

// ErrNoObject means that a record is not a JSON object, so no field of it can be changed.
var ErrNoObject = errors.New("the record is not a JSON object")

// Edit changes fields of a record, which need not be a valid envelope. Other fields stay unchanged.
// A changed field that occurred twice occurs once afterwards. Errors contain no values.
func Edit(raw []byte, changes ...Change) ([]byte, error) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return nil, ErrNoObject
	}
	text := strings.TrimLeft(string(raw), " \n\t\r")
	if text[0] != '{' {
		return nil, ErrNoObject
	}
	values := make(map[string]string, len(changes))
	for _, c := range changes {
		value, err := c.json()
		if err != nil {
			return nil, err
		}
		if _, twice := values[c.Field]; twice {
			return nil, fmt.Errorf("%s is changed twice: change each field once", c.Field)
		}
		values[c.Field] = value
	}
	o := object{buf: append(make([]byte, 0, len(raw)+64), '{'), open: true}
	for name, value := range members(text) {
		changed, ok := values[name]
		switch {
		case !ok:
			o.raw(name, value)
		case changed != "": // the first of two; the second is dropped
			o.raw(name, changed)
			values[name] = ""
		}
	}
	for _, c := range changes {
		if value := values[c.Field]; value != "" {
			o.raw(c.Field, value)
			values[c.Field] = ""
		}
	}
	return append(o.buf, '}'), nil
}

// json is the text of the value; empty for a field that is to be removed.
func (c *Change) json() (string, error) {
	switch f := fieldNamed(c.Field); {
	case c.Remove:
		return "", nil
	case f == 0:
		return "", fmt.Errorf("the envelope has no field %q", c.Field)
	case f&(fieldLabels|fieldSelectors|fieldMetadata) == 0:
		return string(appendString(nil, c.Value)), nil
	case !utf8.ValidString(c.Value) || !json.Valid([]byte(c.Value)):
		return "", fmt.Errorf("%s is not JSON", c.Field)
	}
	return c.Value, nil
}

// raw writes a member whose value is JSON.
func (o *object) raw(name, value string) {
	o.key(name)
	o.buf = append(o.buf, value...)
}
