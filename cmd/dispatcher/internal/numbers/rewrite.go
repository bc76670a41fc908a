package numbers

import (
	"bytes"
	"encoding/json"
)

// Rewrite converts the member "to" of a JSON object to E.164 and keeps every other byte. It returns
// the object unchanged when there is nothing to convert. It parses the object, so it is meant only
// for records whose number is not in E.164.
func (r Region) Rewrite(object []byte) []byte {
	if r == "" {
		return object
	}
	from, to, number := findTo(object)
	international := r.E164(number)
	if international == number {
		return object
	}
	quoted, err := json.Marshal(international)
	if err != nil {
		return object
	}
	return bytes.Join([][]byte{object[:from], quoted, object[to:]}, nil)
}

// findTo is the position and the content of the first member "to"; number is empty without one.
func findTo(object []byte) (from, to int, number string) {
	d := json.NewDecoder(bytes.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return 0, 0, ""
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return 0, 0, ""
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return 0, 0, ""
		}
		if key != "to" {
			continue
		}
		if json.Unmarshal(value, &number) != nil {
			return 0, 0, ""
		}
		end := int(d.InputOffset())
		return end - len(value), end, number
	}
	return 0, 0, ""
}
