package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// region turns numbers as people of one country write them into E.164. The empty region
// leaves every number as it is.
//
// Only this edge does it: an envelope holds E.164, whose meaning depends on no setting.
type region string

// parseRegion takes an ISO 3166 code such as GB.
func parseRegion(code string) (region, error) {
	code = strings.ToUpper(code)
	if code != "" && !phonenumbers.GetSupportedRegions()[code] {
		return "", fmt.Errorf("--default-region %q is no country code; write for example GB", code)
	}
	return region(code), nil
}

// e164 returns the number in E.164 form, or unchanged when it has a country code already
// or cannot be a number of the region: the envelope's own check will say so.
func (r region) e164(number string) string {
	if r == "" || strings.HasPrefix(number, "+") {
		return number
	}
	parsed, err := phonenumbers.Parse(number, string(r))
	if err != nil || !phonenumbers.IsPossibleNumber(parsed) {
		return number
	}
	return phonenumbers.Format(parsed, phonenumbers.E164)
}

// rewrite does the same to the member "to" of a JSON object and keeps every other byte. It returns
// the object as it is when there is nothing to change.
func (r region) rewrite(object []byte) []byte {
	if r == "" {
		return object
	}
	from, to, number := findTo(object)
	international := r.e164(number)
	if international == number {
		return object
	}
	quoted, err := json.Marshal(international)
	if err != nil {
		return object
	}
	return bytes.Join([][]byte{object[:from], quoted, object[to:]}, nil)
}

// findTo is the place and the content of the first member "to"; number is empty when there is none.
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
