package envelope

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Bounds of a span of time, the form of a selector's expires_after. Spans count whole milliseconds,
// so that a number of seconds is read back as it was written.
const (
	leastSpan     = time.Millisecond
	longestSpan   = 4e9 // seconds, more than any text gives
	maxSpanDigits = 6   // of each count in a text
)

// spanUnits are the units of a text, in the only order allowed.
var spanUnits = [...]struct {
	name string
	unit time.Duration
}{{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// parseSpan reads the text of a JSON value: a string such as "30s" or "1h30m", or a number of
// seconds, which is rounded to milliseconds. An empty text, zero and negative spans are refused.
func parseSpan(value string) (time.Duration, bool) {
	if text, ok := str(value); ok {
		return parseSpanText(text)
	}
	n, ok := content(value)
	if !ok || n.Number < leastSpan.Seconds() || n.Number > longestSpan {
		return 0, false
	}
	return time.Duration(math.Round(n.Number*1000)) * time.Millisecond, true
}

func parseSpanText(s string) (time.Duration, bool) {
	var sum time.Duration
	for _, u := range spanUnits {
		digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
		rest, ok := strings.CutPrefix(s[digits:], u.name)
		if digits == 0 || !ok || u.name == "m" && strings.HasPrefix(rest, "s") {
			continue // it may be of a later unit: m must not match the start of ms
		}
		n, err := strconv.Atoi(s[:digits])
		if err != nil || digits > maxSpanDigits {
			return 0, false
		}
		sum, s = sum+time.Duration(n)*u.unit, rest
	}
	return sum, s == "" && sum > 0
}

// appendSpan writes a span as a number of seconds that parseSpan reads back.
func appendSpan(dst []byte, d time.Duration) []byte {
	return strconv.AppendFloat(dst, float64(d.Milliseconds())/1000, 'f', -1, 64)
}
