package sms

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape announces that the next septet belongs to the extension table, 3GPP TS
// 23.038 section 6.2.1. It is not a character: U+001B has no place in GSM-7.
const Escape = 0x1B

// defaultTable is the GSM 7-bit default alphabet in the order of its codes 0x00 to
// 0x7F, 3GPP TS 23.038 section 6.2.1. Position 0x1B is the escape, held here by U+001B.
const defaultTable = "@£$¥èéùìòÇ\nØø\rÅå" +
	"Δ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ" +
	" !\"#¤%&'()*+,-./" +
	"0123456789:;<=>?" +
	"¡ABCDEFGHIJKLMNO" +
	"PQRSTUVWXYZÄÖÑÜ§" +
	"¿abcdefghijklmno" +
	"pqrstuvwxyzäöñüà"

// extensionTable lists the characters after the escape with their second septet, 3GPP TS 23.038
// section 6.2.1.1.
var extensionTable = [...]struct {
	code byte
	char rune
}{
	{0x0A, '\f'},
	{0x14, '^'},
	{0x28, '{'},
	{0x29, '}'},
	{0x2F, '\\'},
	{0x3C, '['},
	{0x3D, '~'},
	{0x3E, ']'},
	{0x40, '|'},
	{0x65, '€'},
}

// septet is how one character is written: its code, with extended set if the escape precedes it, or
// none.
type septet uint16

const (
	extended septet = 0x80
	none     septet = 0xFFFF
)

// The Greek capitals are the only characters of the default table above U+00FF.
const (
	greekFirst = 'Γ'
	greekLast  = 'Ω'
)

// encoding finds the septet of a character. Two small arrays and one comparison cover the whole
// alphabet, so that counting is a table look-up per character.
type encoding struct {
	latin [0x100]septet
	greek [greekLast - greekFirst + 1]septet
	euro  septet
}

// decoding finds the character of a septet; an extension code without a character is zero.
type decoding struct {
	plain    characters
	extended characters
}

var (
	encode = newEncoding()
	decode = newDecoding()
)

func newEncoding() *encoding {
	e := &encoding{euro: none}
	for i := range e.latin {
		e.latin[i] = none
	}
	for i := range e.greek {
		e.greek[i] = none
	}
	code := septet(0)
	for _, r := range defaultTable {
		if code != Escape {
			*e.slot(r) = code
		}
		code++
	}
	for _, x := range extensionTable {
		*e.slot(x.char) = septet(x.code) | extended
	}
	return e
}

// slot returns where the septet of a character of the alphabet is stored.
func (e *encoding) slot(r rune) *septet {
	switch {
	case r < rune(len(e.latin)):
		return &e.latin[r]
	case r >= greekFirst && r <= greekLast:
		return &e.greek[r-greekFirst]
	default:
		return &e.euro
	}
}

// septet returns how r is written, or none.
func (e *encoding) septet(r rune) septet {
	switch {
	case r < rune(len(e.latin)):
		return e.latin[r]
	case r >= greekFirst && r <= greekLast:
		return e.greek[r-greekFirst]
	case r == '€':
		return e.euro
	}
	return none
}

// units is how many septets the character takes: one, or two with the escape.
func (s septet) units() int { return 1 + int(s>>7) }

func newDecoding() *decoding {
	d := &decoding{}
	code := 0
	for _, r := range defaultTable {
		if code != Escape {
			d.plain[code] = r
		}
		code++
	}
	for _, x := range extensionTable {
		d.extended[x.code] = x.char
	}
	return d
}

// Alphabet is the character set a message is sent in. It decides how many characters a segment
// holds.
type Alphabet uint8

const (
	// GSM7 is the GSM 7-bit default alphabet with its extension table, 3GPP TS 23.038 sections
	// 6.2.1 and 6.2.1.1. Its unit is the septet.
	GSM7 Alphabet = iota
	// UCS2 is 16-bit Unicode, 3GPP TS 23.038 section 6.2.3. Its unit is the 16-bit code unit.
	// Characters beyond the basic plane take a surrogate pair, that is two units, as every current
	// handset reads them (UTF-16).
	UCS2
)

// String returns the word used in the records and by the segments command.
func (a Alphabet) String() string {
	switch a {
	case GSM7:
		return "gsm7"
	case UCS2:
		return "ucs2"
	}
	return fmt.Sprintf("Alphabet(%d)", uint8(a))
}

// Reference is the width of the reference number that all segments of a message share in the user
// data header, 3GPP TS 23.040 sections 9.2.3.24.1 and 9.2.3.24.8. The wider one costs an octet in
// each segment.
type Reference uint8

const (
	// Reference8 has a header of 6 octets: 153 septets or 67 UCS-2 units remain.
	Reference8 Reference = iota
	// Reference16 has a header of 7 octets: 152 septets or 66 UCS-2 units remain.
	Reference16
)

// String returns the width in bits as the routing document writes it.
func (r Reference) String() string {
	switch r {
	case Reference8:
		return "8"
	case Reference16:
		return "16"
	}
	return fmt.Sprintf("Reference(%d)", uint8(r))
}

// Capacity returns how many units of the alphabet a message of one segment holds and how many each
// segment of a longer message holds. The user data is 140 octets (3GPP TS 23.040 section 9.2.3.16):
// 160 septets or 70 units of 16 bits.
func Capacity(a Alphabet, ref Reference) (single, each int) {
	switch {
	case a == UCS2 && ref == Reference16:
		return 70, 66
	case a == UCS2:
		return 70, 67
	case ref == Reference16:
		return 160, 152
	default:
		return 160, 153
	}
}

// ErrAlphabet says that a text has a character that GSM-7 lacks. The wrapped sentence names its
// position in bytes, never the text.
var ErrAlphabet = errors.New("character is not in the GSM 7-bit alphabet")

// ErrEncoding says that octets are not a text in the expected alphabet.
var ErrEncoding = errors.New("octets are not a text in this alphabet")

// AppendGSM7 appends the text to dst, one septet per octet with the high bit clear, as SMPP
// requires for data_coding 0. A character of the extension table is written as the escape and its
// code. On error it returns dst unchanged.
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

// DecodeUCS2 reads UTF-16, high octet first. An unpaired surrogate becomes U+FFFD. An odd number of
// octets is an error.
func DecodeUCS2(octets []byte) (string, error) {
	text, err := DecodeUCS2Part(octets)
	return JoinParts(text), err
}

// halves is where DecodeUCS2Part keeps unpaired surrogates: U+D83D becomes U+10D83D, which is for
// private use, so that whatever stores texts takes it.
const halves = 0x100000

// DecodeUCS2Part is DecodeUCS2 for a part of a longer text. Some handsets cut a text within a
// surrogate pair, so it keeps unpaired surrogates for JoinParts.
func DecodeUCS2Part(octets []byte) (string, error) {
	if len(octets)%2 != 0 {
		return "", fmt.Errorf("decode %d octets: %w", len(octets), ErrEncoding)
	}
	text := make([]rune, 0, len(octets)/2)
	for len(octets) > 0 {
		r := rune(binary.BigEndian.Uint16(octets))
		octets = octets[2:]
		if utf16.IsSurrogate(r) && len(octets) > 0 {
			next := rune(binary.BigEndian.Uint16(octets))
			if pair := utf16.DecodeRune(r, next); pair != utf8.RuneError {
				r, octets = pair, octets[2:]
			}
		}
		if utf16.IsSurrogate(r) {
			r += halves
		}
		text = append(text, r)
	}
	return string(text), nil
}

// JoinParts is the text whose adjacent parts make up the argument: two surrogates of a pair become
// their character, and an unpaired one becomes U+FFFD.
func JoinParts(parts string) string {
	units := make([]uint16, 0, len(parts))
	for _, r := range parts {
		if kept := r - halves; utf16.IsSurrogate(kept) {
			units = append(units, uint16(kept))
		} else {
			units = utf16.AppendRune(units, r)
		}
	}
	return string(utf16.Decode(units))
}
