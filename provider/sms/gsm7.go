package sms

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

// extensionTable lists the characters behind the escape with their second septet,
// 3GPP TS 23.038 section 6.2.1.1.
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

// A septet is how one character is written: its code, with extended set when the
// escape goes before it, or none.
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

// encoding finds the septet of a character. Two small arrays and one comparison
// cover the whole alphabet, so that counting is a table look-up per character.
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

// slot returns where the septet of a character of the alphabet is kept.
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

// units is how many septets the character takes: one, or two behind the escape.
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

// FitsGSM7 reports whether every character of the text is in the GSM 7-bit default
// alphabet or its extension table. Invalid UTF-8 does not fit.
func FitsGSM7(text string) bool {
	for _, r := range text {
		if encode.septet(r) == none {
			return false
		}
	}
	return true
}
