package smpp

import (
	"encoding/binary"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// parseInbound reads a subscriber's message in a deliver_sm or data_sm. It is false for receipts,
// for automatic acknowledgements of handsets (section 5.2.12), and for content that is not text.
func (c *Config) parseInbound(m *pdu.Message, now time.Time) (provider.Inbound, bool) {
	if !c.isInbound(m) {
		return provider.Inbound{}, false
	}
	in := provider.Inbound{From: c.e164(m.Source), To: c.e164(m.Dest), At: now}
	if m.ESMClass&pdu.ESMClassTypeMask == pdu.ESMClassDefault {
		// In an acknowledgement it is the id of our message, so that two answers have the same one.
		in.Reference = cleanID([]byte(m.TLVs.Text(pdu.TagReceiptedMessageID)))
	}
	octets, shift := m.Payload(), sms.Shift{}
	if m.ESMClass&pdu.ESMClassUDHI != 0 {
		var h header
		h, octets = splitHeader(octets)
		in.Group, in.Part, in.Parts, shift = h.group, h.part, h.parts, h.shift
	}
	if in.Parts == 0 {
		in.Group, in.Part, in.Parts = sarPlace(m.TLVs)
	}
	var ok bool
	in.Text, ok = decodeText(m.DataCoding, c.Alphabet, shift, octets)
	if in.Parts < 2 {
		in.Text = sms.JoinParts(in.Text)
	}
	return in, ok
}

// isInbound reports whether a person wrote the message, perhaps as a manual answer to one of ours.
func (c *Config) isInbound(m *pdu.Message) bool {
	switch m.ESMClass & pdu.ESMClassTypeMask {
	case pdu.ESMClassDefault, pdu.ESMClassUserAck:
		return !c.carriesReceipt(m, receiptText(m))
	}
	return false
}

// e164 adds the plus to an international number, recognised by its type or, if the SMSC leaves that
// open, by its length, unless Config.NationalUnknown. Short codes, national numbers and names stay
// unchanged.
func (c *Config) e164(a pdu.Address) string {
	number, plus := strings.CutPrefix(a.Addr, "+")
	if !allDigits(number) {
		return a.Addr
	}
	if rest, ok := strings.CutPrefix(number, "00"); ok && len(rest) > maxShortCode {
		number, plus = rest, true
	}
	switch {
	case plus:
	case a.TON == tonInternational && len(number) > maxCommonCode:
	case a.TON == tonUnknown && !c.NationalUnknown && len(number) > maxShortCode &&
		number[0] != '0':
	default:
		return number
	}
	return "+" + number
}

// maxCommonCode is the length of the longest short code in common use; peers mark those as
// international too.
const maxCommonCode = 6

// header is the concatenation and the tables in a user data header.
type header struct {
	group       uint16
	part, parts int // part from zero; parts is zero for a message that is whole
	shift       sms.Shift
}

// splitHeader removes the user data header (3GPP TS 23.040 section 9.2.3.24). A header longer than
// the message is left in, as a handset would show it.
func splitHeader(octets []byte) (header, []byte) {
	if len(octets) == 0 || 1+int(octets[0]) > len(octets) {
		return header{}, octets
	}
	end := 1 + int(octets[0])
	h := parseHeader(octets[1:end])
	h.shift = sms.ShiftIn(octets[1:end])
	return h, octets[end:]
}

// parseHeader reads the concatenation among the elements of a header: identifier, length, data,
// repeated.
func parseHeader(elements []byte) (h header) {
	for len(elements) >= 2 && len(elements) >= 2+int(elements[1]) {
		data := elements[2 : 2+int(elements[1])]
		switch {
		case elements[0] == concatenation8 && len(data) == 3:
			h = place(uint16(data[0]), data[2], data[1])
		case elements[0] == concatenation16 && len(data) == 4:
			h = place(binary.BigEndian.Uint16(data), data[3], data[2])
		}
		elements = elements[2+len(data):]
	}
	return h
}

// Elements of a user data header (3GPP TS 23.040 sections 9.2.3.24.1 and 9.2.3.24.8).
const (
	concatenation8  = 0x00
	concatenation16 = 0x08
)

// place is zero for numbers that do not name a valid part (section 9.2.3.24.1: ignore such an
// element).
func place(group uint16, number, total byte) header {
	if number == 0 || number > total {
		return header{}
	}
	return header{group: group, part: int(number) - 1, parts: int(total)}
}

// sarPlace reads the sar_* parameters (sections 5.3.2.22 to 24).
func sarPlace(tlvs pdu.TLVs) (group uint16, part, parts int) {
	group, ok := tlvs.Uint(pdu.TagSARMsgRefNum)
	total, ok2 := tlvs.Uint(pdu.TagSARTotalSegments)
	number, ok3 := tlvs.Uint(pdu.TagSARSegmentSeqnum)
	if !ok || !ok2 || !ok3 || total > 0xFF || number > 0xFF {
		return 0, 0, 0
	}
	h := place(group, byte(number), byte(total))
	return h.group, h.part, h.parts
}

// charset is the encoding of a received message.
type charset uint8

const (
	unreadable charset = iota // binary, or an unknown alphabet
	charsetGSM7
	charsetLatin1
	charsetUCS2
	charsetCyrillic
	charsetHebrew
)

// decodeText decodes a message, which may be a part, by its data_coding; false if it is not text.
// Octets outside the alphabet are read as ISO 8859-1, which is what peers with a wrong data_coding
// send.
func decodeText(
	coding byte, defaultAlphabet Alphabet, shift sms.Shift, octets []byte,
) (string, bool) {
	switch charsetOf(coding, defaultAlphabet) {
	case charsetGSM7:
		if text, err := shift.Decode(octets); err == nil {
			return text, true
		}
	case charsetUCS2:
		text, err := sms.DecodeUCS2Part(octets[:len(octets)&^1])
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

// charsetOf reads data_coding: the values of section 5.2.19, and the groups of 3GPP TS 23.038
// section 4 that some peers pass through.
func charsetOf(coding byte, defaultAlphabet Alphabet) charset {
	switch coding {
	case pdu.CodingDefault:
		if defaultAlphabet == GSM7 {
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
	case group >= 1 && group <= 7: // general data coding; bit 5 means "compressed"
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

// cyrillic is ISO 8859-5, whose upper half follows the order of Unicode except in four places.
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

// hebrew is ISO 8859-8; undefined octets become U+FFFD.
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
