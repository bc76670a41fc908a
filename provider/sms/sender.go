package sms

import "strings"

// SenderKind says what a sender id is. Carriers allow some kinds in some countries.
type SenderKind uint8

// Kinds of sender ids.
const (
	NoSender     SenderKind = iota // empty: the channel uses its default
	Alphanumeric                   // a name: up to 11 septets of the GSM alphabet, not digits alone
	ShortCode                      // 3 to 8 digits
	LongCode                       // a number: a plus and 8 to 15 digits, or 9 to 15 digits
	BadSender                      // no network could show it
)

// Bounds of sender ids.
const (
	// maxName is what the originating address holds: 10 octets of 7-bit characters (3GPP TS 23.040
	// section 9.1.2.5).
	maxName                 = 11
	minShort, maxShort      = 3, 8
	minInternational, maxLC = 8, 15 // digits of a number: ITU-T E.164 section 6
)

// senderWords are the words of the routing document.
var senderWords = [...]string{"none", "alphanumeric", "short_code", "long_code", "bad"}

// String returns the word that the routing document uses.
func (k SenderKind) String() string {
	if int(k) < len(senderWords) {
		return senderWords[k]
	}
	return "bad"
}

// SenderKinds are the kinds that a message may have, without NoSender and BadSender.
func SenderKinds() []SenderKind { return []SenderKind{Alphanumeric, ShortCode, LongCode} }

// KindOf classifies a sender id. Anything but digits after an optional plus makes it a name. A
// number without its plus has more digits than a short code.
func KindOf(sender string) SenderKind {
	if sender == "" {
		return NoSender
	}
	digits, plus := strings.CutPrefix(sender, "+")
	if digits != "" && strings.Trim(digits, "0123456789") == "" {
		return kindOfDigits(digits, plus)
	}
	size, ok := countGSM7(sender, Reference8)
	if !ok || size.Units > maxName || strings.TrimSpace(sender) != sender ||
		strings.ContainsAny(sender, "\n\r\f") {
		return BadSender
	}
	return Alphanumeric
}

func kindOfDigits(digits string, plus bool) SenderKind {
	n := len(digits)
	switch {
	case plus && n >= minInternational && n <= maxLC && digits[0] != '0',
		!plus && n > maxShort && n <= maxLC:
		return LongCode
	case !plus && n >= minShort && n <= maxShort:
		return ShortCode
	}
	return BadSender
}
