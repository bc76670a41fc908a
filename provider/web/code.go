package web

import "strconv"

// Code is the bounded word for an answer: its status, and the vendor's code when it has one.
func (a *Answer) Code(code string) string {
	status := strconv.Itoa(a.Status)
	if code = SafeCode(code); code != "" {
		return status + "/" + code
	}
	return status
}

// maxCode bounds a vendor's code, in bytes.
const maxCode = 40

// SafeCode returns a vendor's code if it can be shown: short, made of letters, digits and "-_.". Anything
// else, and a row of digits as long as a phone number, is "other"; an empty one stays empty.
func SafeCode(code string) string {
	if len(code) > maxCode {
		return "other"
	}
	digits := 0
	for _, c := range []byte(code) {
		switch {
		case c >= '0' && c <= '9':
			if digits++; digits > maxDigits {
				return "other"
			}
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_', c == '.':
			digits = 0
		default:
			return "other"
		}
	}
	return code
}

// maxDigits is fewer than any phone number has.
const maxDigits = 6
