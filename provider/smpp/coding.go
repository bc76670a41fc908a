package smpp

import (
	"unicode/utf8"

	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// textAlphabet is what the octets of one message are written in.
type textAlphabet uint8

const (
	textGSM7  textAlphabet = iota
	textBytes              // Latin1 or ASCII, one octet for each character
	textUCS2
)

// chooseAlphabet keeps the alphabet that segments were counted in, unless the
// characters behind data_coding 0 at this SMSC lack some of the text's.
func chooseAlphabet(behindZero Alphabet, counted sms.Alphabet, text string) textAlphabet {
	switch {
	case counted == sms.UCS2:
		return textUCS2
	case behindZero == GSM7:
		return textGSM7
	case fits(text, behindZero):
		return textBytes
	default:
		return textUCS2
	}
}

func fits(text string, a Alphabet) bool {
	last := rune(0x7F)
	if a == Latin1 {
		last = 0xFF
	}
	for _, r := range text {
		if r > last {
			return false
		}
	}
	return true
}

// appendText writes a piece of the text in the octets of the plan.
func (p *plan) appendText(dst []byte, piece string) ([]byte, error) {
	switch p.alphabet {
	case textGSM7:
		return p.shift.Append(dst, piece)
	case textUCS2:
		return sms.AppendUCS2(dst, piece), nil
	case textBytes:
		for _, r := range piece {
			dst = append(dst, byte(r))
		}
	}
	return dst, nil
}

// splitUCS2 cuts a text of GSM-7 characters, each of which is one UCS-2 unit, for
// SMSCs that have no other way to take it.
func splitUCS2(text string, reference sms.Reference) []string {
	single, each := sms.Capacity(sms.UCS2, reference)
	if utf8.RuneCountInString(text) <= single {
		return []string{text}
	}
	var segments []string
	start, units := 0, 0
	for i := range text {
		if units == each {
			segments = append(segments, text[start:i])
			start, units = i, 0
		}
		units++
	}
	return append(segments, text[start:])
}

// Codings that carry a message class (section 5.2.19, which points to 3GPP TS 23.038 section 4). The default
// alphabet has the group "message class" of its own; UCS-2 has one within "general data coding".
const (
	codingGSMWithClass  byte = 0xF0
	codingUCS2WithClass byte = 0x18
)

// coding is the data_coding of a text; see Config.DefaultCoding.
func (c *Config) coding(a textAlphabet) byte {
	fixed, plain, classed := c.DefaultCoding, pdu.CodingDefault, codingGSMWithClass
	if a == textUCS2 {
		fixed, plain, classed = c.UCS2Coding, pdu.CodingUCS2, codingUCS2WithClass
	}
	switch {
	case fixed != nil:
		return *fixed
	case c.MessageClass != nil:
		return classed | *c.MessageClass
	}
	return plain
}
