package decide

import (
	"strconv"
	"strings"
)

// CallingCode is the calling code of an E.164 number, which begins with a plus: 1 for +12125550123,
// 44 for +447700900123; 0 for a number too short to have one. It stays in the record of a message
// after the number is erased. The codes are those of ITU-T E.164, none of which is a prefix of
// another: zones 1 and 7 have one digit, those in twoDigits two, all others three.
func CallingCode(number string) int16 {
	if len(number) < 4 || number[0] != '+' {
		return 0
	}
	first, second, third := digit(number[1]), digit(number[2]), digit(number[3])
	switch two := 10*first + second; {
	case first == 1 || first == 7:
		return first
	case twoDigits[two]:
		return two
	default:
		return 10*two + third
	}
}

// begins reports whether numbers with a calling code begin with a prefix: may is true if some of
// them do, surely if all do. Code 0 stands for a number about which nothing is known.
func begins(code int16, prefix string) (may, surely bool) {
	if code == 0 {
		return true, prefix == ""
	}
	known := "+" + strconv.Itoa(int(code))
	surely = strings.HasPrefix(known, prefix)
	return surely || strings.HasPrefix(prefix, known), surely
}

// mayBeIn reports whether a number with a calling code may belong to a country.
func (r *Routing) mayBeIn(code int16, country string) bool {
	if r.CallingCode == nil || code == 0 {
		return true
	}
	of := r.CallingCode(country)
	return of == 0 || of == int(code)
}

func digit(c byte) int16 { return int16(c - '0') }

// twoDigits are the calling codes of two digits, those of +2 to +9 that are assigned.
var twoDigits = [100]bool{
	20: true, 27: true,
	30: true, 31: true, 32: true, 33: true, 34: true, 36: true, 39: true,
	40: true, 41: true, 43: true, 44: true, 45: true, 46: true, 47: true, 48: true, 49: true,
	51: true, 52: true, 53: true, 54: true, 55: true, 56: true, 57: true, 58: true,
	60: true, 61: true, 62: true, 63: true, 64: true, 65: true, 66: true,
	81: true, 82: true, 84: true, 86: true,
	90: true, 91: true, 92: true, 93: true, 94: true, 95: true, 98: true,
}
