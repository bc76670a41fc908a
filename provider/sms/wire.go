package sms

import (
	"encoding/binary"
	"errors"
	"fmt"
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
func AppendGSM7(dst []byte, s string) ([]byte, error) { return Shift{}.Append(dst, s) }

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
func DecodeGSM7(octets []byte) (string, error) { return Shift{}.Decode(octets) }

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
