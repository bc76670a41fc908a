package smpp

import (
	"strings"

	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// charset is what the octets of a received message are.
type charset uint8

const (
	unreadable charset = iota // binary, or an alphabet that is not known here
	charsetGSM7
	charsetLatin1
	charsetUCS2
	charsetCyrillic
	charsetHebrew
)

// decodeText reads the octets of a message by its data_coding. It is false for what is no text. Octets that
// the alphabet does not have are read as ISO 8859-1, which is what peers mean that announce an alphabet and
// send another.
func decodeText(coding byte, behindZero Alphabet, shift sms.Shift, octets []byte) (string, bool) {
	switch charsetOf(coding, behindZero) {
	case charsetGSM7:
		if text, err := shift.Decode(octets); err == nil {
			return text, true
		}
	case charsetUCS2:
		text, err := sms.DecodeUCS2(octets[:len(octets)&^1])
		return text, err == nil
	case charsetCyrillic:
		return decodeOctets(octets, cyrillic), true
	case charsetHebrew:
		return decodeOctets(octets, hebrew), true
	case unreadable:
		return "", false
	case charsetLatin1:
	}
	return decodeOctets(octets, func(b byte) rune { return rune(b) }), true
}

// charsetOf reads data_coding: the values of section 5.2.19, and the groups of 3GPP TS 23.038 section 4 that
// peers pass through.
func charsetOf(coding byte, behindZero Alphabet) charset {
	switch coding {
	case pdu.CodingDefault:
		if behindZero == GSM7 {
			return charsetGSM7
		}
		return charsetLatin1
	case pdu.CodingASCII, pdu.CodingLatin1:
		return charsetLatin1
	case pdu.CodingCyrillic:
		return charsetCyrillic
	case pdu.CodingHebrew:
		return charsetHebrew
	case pdu.CodingUCS2:
		return charsetUCS2
	}
	group, alphabet := coding>>4, coding>>2&3
	switch {
	case group >= 1 && group <= 7: // general data coding; bit 5 says "compressed"
		if group&2 != 0 {
			return unreadable
		}
		return [...]charset{charsetGSM7, unreadable, charsetUCS2, unreadable}[alphabet]
	case group == 0xC, group == 0xD: // message waiting, default alphabet
		return charsetGSM7
	case group == 0xE: // message waiting, UCS-2
		return charsetUCS2
	case group == 0xF && alphabet&1 == 0: // message class, not 8-bit data
		return charsetGSM7
	}
	return unreadable
}

func decodeOctets(octets []byte, char func(byte) rune) string {
	var text strings.Builder
	text.Grow(len(octets))
	for _, b := range octets {
		text.WriteRune(char(b))
	}
	return text.String()
}

// cyrillic is ISO 8859-5, whose upper half but four follows Unicode in order.
func cyrillic(b byte) rune {
	switch {
	case b == 0xF0:
		return '№'
	case b == 0xFD:
		return '§'
	case b <= 0xA0 || b == 0xAD:
		return rune(b)
	}
	return rune(b) + 'Ё' - 0xA1
}

// hebrew is ISO 8859-8; what it leaves undefined is U+FFFD.
func hebrew(b byte) rune {
	switch {
	case b >= 0xE0 && b <= 0xFA:
		return rune(b) + 'א' - 0xE0
	case b == 0xAA:
		return '×'
	case b == 0xBA:
		return '÷'
	case b == 0xDF:
		return '‗'
	case b == 0xFD, b == 0xFE:
		return rune(b) + 0x200E - 0xFD
	case b == 0xA1 || b > 0xBE:
		return '\uFFFD'
	}
	return rune(b)
}
