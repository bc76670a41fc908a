package sms

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
)

// ErrAlphabet says that a text has a character that GSM-7 lacks. The wrapped
// sentence names its position in bytes, never the text.
var ErrAlphabet = errors.New("character is not in the GSM 7-bit alphabet")

// ErrEncoding says that octets are not a text in the alphabet they claim.
var ErrEncoding = errors.New("octets are not a text in this alphabet")

// AppendGSM7 appends the text to dst, one septet per octet with the high bit
// clear, as SMPP wants it under data_coding 0; a character of the extension table
// is written as the escape and its code. On error dst comes back as it was.
func AppendGSM7(dst []byte, s string) ([]byte, error) {
	start := len(dst)
	for i, r := range s {
		c := encode.septet(r)
		switch {
		case c == none:
			return dst[:start], fmt.Errorf("encode byte %d: %w", i, ErrAlphabet)
		case c&extended != 0:
			dst = append(dst, Escape, byte(c&^extended))
		default:
			dst = append(dst, byte(c))
		}
	}
	return dst, nil
}

// AppendUCS2 appends the text to dst in UTF-16, high octet first (3GPP TS 23.038
// section 6.2.3). Each byte that is not valid UTF-8 becomes U+FFFD.
func AppendUCS2(dst []byte, s string) []byte {
	for _, r := range s {
		if r <= 0xFFFF {
			dst = binary.BigEndian.AppendUint16(dst, uint16(r))
			continue
		}
		high, low := utf16.EncodeRune(r)
		dst = binary.BigEndian.AppendUint16(dst, uint16(high))
		dst = binary.BigEndian.AppendUint16(dst, uint16(low))
	}
	return dst
}

// DecodeGSM7 reads one septet per octet. It follows what the standard asks of a
// receiver (3GPP TS 23.038 sections 6.2.1 and 6.2.1.1): an extension code without a
// character is read from the default table, and an escape that announces nothing is
// a space. An octet above 0x7F is an error.
func DecodeGSM7(octets []byte) (string, error) {
	var text strings.Builder
	text.Grow(len(octets))
	for i := 0; i < len(octets); i++ {
		c := octets[i]
		if c != Escape {
			if c > 0x7F {
				return "", fmt.Errorf("decode octet %d: %w", i, ErrEncoding)
			}
			text.WriteRune(decode.plain[c])
			continue
		}
		if i+1 == len(octets) || octets[i+1] == Escape || octets[i+1] > 0x7F {
			text.WriteByte(' ')
			continue
		}
		i++
		text.WriteRune(behindEscape(octets[i]))
	}
	return text.String(), nil
}

// behindEscape is the character that a receiver shows for an escaped code.
func behindEscape(code byte) rune {
	if r := decode.extended[code]; r != 0 {
		return r
	}
	return decode.plain[code]
}

// DecodeUCS2 reads UTF-16, high octet first. A surrogate without its partner
// becomes U+FFFD. An odd number of octets is an error.
func DecodeUCS2(octets []byte) (string, error) {
	if len(octets)%2 != 0 {
		return "", fmt.Errorf("decode %d octets: %w", len(octets), ErrEncoding)
	}
	units := make([]uint16, len(octets)/2)
	for i := range units {
		units[i] = binary.BigEndian.Uint16(octets[2*i:])
	}
	return string(utf16.Decode(units)), nil
}
