package envelope

import (
	"strconv"
	"strings"
)

const (
	maxWhole    = 12 // digits before the point: 10^12 units are 10^18 micros, within an int64
	maxDecimals = 6
	oneUnit     = 1_000_000 // micros
)

// parseMicros reads a plain decimal such as 0.05 as millionths. Signs, exponents and a seventh
// decimal are refused: a price cap is never rounded.
func parseMicros(s string) (int64, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if whole == "" || len(whole) > maxWhole || len(fraction) > maxDecimals || point && fraction == "" {
		return 0, false
	}
	// ParseUint accepts neither a sign nor a space, so the text is digits only.
	micros, err := strconv.ParseUint(whole+fraction+"000000"[len(fraction):], 10, 63)
	return int64(micros), err == nil
}

// appendMicros writes the shortest decimal that parseMicros reads back. The amount must not be
// negative.
func appendMicros(dst []byte, micros int64) []byte {
	dst = strconv.AppendInt(dst, micros/oneUnit, 10)
	rest := micros % oneUnit
	if rest == 0 {
		return dst
	}
	dst = append(dst, '.')
	for place := int64(oneUnit / 10); rest > 0; place /= 10 {
		dst = append(dst, byte('0'+rest/place))
		rest %= place
	}
	return dst
}
