package envelope

import (
	"strings"
	"time"
)

// firstYear keeps the times of producers apart from the zero time, which means none.
const firstYear = 1900

// parseInstant reads RFC 3339 as the schema does. The time package alone accepts more: hours of one
// digit, a comma for the point, offsets of 24 hours, and more than nine decimals, which it would
// cut off.
func parseInstant(s string) (time.Time, bool) {
	const seconds = len("2006-01-02T15:04:05")
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || len(s) <= seconds || s[seconds-6] != ':' || t.Year() < firstYear {
		return time.Time{}, false
	}
	fraction, utc := strings.CutSuffix(s[seconds:], "Z")
	if !utc {
		offset := fraction[len(fraction)-len("+hh:mm"):]
		fraction = strings.TrimSuffix(fraction, offset)
		if offset[1:3] > "23" || offset[4:] > "59" {
			return time.Time{}, false
		}
	}
	if fraction != "" && fraction[0] != '.' || len(fraction) > len(".999999999") {
		return time.Time{}, false
	}
	return t, true
}
