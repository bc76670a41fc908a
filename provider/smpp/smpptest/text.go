package smpptest

import (
	"encoding/binary"

	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// concatenation is where a part belongs.
type concatenation struct {
	reference   uint16
	part, parts int
	shift       sms.Shift // the tables of a text in GSM-7
}

// content takes a message apart: its place among others and its text octets. A header
// that cannot be read is left in the text, as a handset would show it.
func content(m *pdu.Message) (concatenation, []byte) {
	octets := m.Payload()
	whole := concatenation{part: 1, parts: 1}
	if m.ESMClass&pdu.ESMClassUDHI != 0 && len(octets) > 0 {
		if end := 1 + int(octets[0]); end <= len(octets) {
			place := parseHeader(octets[1:end])
			place.shift = sms.ShiftIn(octets[1:end])
			return place, octets[end:]
		}
		return whole, octets
	}
	reference, ok := m.TLVs.Uint(pdu.TagSARMsgRefNum)
	parts, ok2 := m.TLVs.Uint(pdu.TagSARTotalSegments)
	part, ok3 := m.TLVs.Uint(pdu.TagSARSegmentSeqnum)
	if ok && ok2 && ok3 {
		return concatenation{reference: reference, part: int(part), parts: int(parts)}, octets
	}
	return whole, octets
}

// parseHeader reads the concatenation element of a user data header (3GPP TS 23.040
// section 9.2.3.24: identifier, length, data, repeated).
func parseHeader(h []byte) concatenation {
	for len(h) >= 2 && len(h) >= 2+int(h[1]) {
		data := h[2 : 2+int(h[1])]
		switch {
		case h[0] == 0 && len(data) == 3:
			return concatenation{reference: uint16(data[0]), part: int(data[2]), parts: int(data[1])}
		case h[0] == 8 && len(data) == 4:
			return concatenation{reference: binary.BigEndian.Uint16(data), part: int(data[3]), parts: int(data[2])}
		}
		h = h[2+len(data):]
	}
	return concatenation{part: 1, parts: 1}
}

// decodeText reads octets as the server's alphabets say; what is not text in its
// alphabet becomes one octet, one character.
func decodeText(coding byte, behindZero Alphabet, shift sms.Shift, octets []byte) string {
	if (coding == pdu.CodingDefault || coding&0xFC == 0xF0) && behindZero == GSM7 {
		if text, err := shift.Decode(octets); err == nil {
			return text
		}
	}
	if coding == pdu.CodingUCS2 || coding&0xFC == 0x18 {
		if text, err := sms.DecodeUCS2(octets); err == nil {
			return text
		}
	}
	runes := make([]rune, len(octets))
	for i, b := range octets {
		runes[i] = rune(b)
	}
	return string(runes)
}

// Message is what a handset shows after it has joined the parts.
type Message struct {
	From, To string
	Text     string
	Parts    int
	Complete bool // every part arrived
	Repeated int  // parts that arrived more than once
}

// Join puts the parts of accepted submits together as a handset does, in the order in
// which their messages began. The parts of one message share sender, recipient,
// reference and number of parts.
func Join(submits []Submit) []Message {
	type key struct {
		from, to  string
		reference uint16
		parts     int
	}
	type message struct {
		Message
		texts []*string
		left  int
	}
	var all []*message
	open := make(map[key]*message)
	for _, s := range submits {
		if !s.Accepted() || s.Part < 1 || s.Part > s.Parts {
			continue
		}
		k := key{s.From, s.To, s.Reference, s.Parts}
		m := open[k]
		if m == nil {
			m = &message{Message: Message{From: s.From, To: s.To, Parts: s.Parts}, texts: make([]*string, s.Parts), left: s.Parts}
			all, open[k] = append(all, m), m
		}
		if m.texts[s.Part-1] != nil {
			m.Repeated++
			continue
		}
		m.texts[s.Part-1] = &s.Text
		if m.left--; m.left == 0 && s.Parts == 1 {
			delete(open, k) // the next whole message to the same number is another one
		}
	}
	out := make([]Message, len(all))
	for i, m := range all {
		m.Complete = m.left == 0
		for _, text := range m.texts {
			if text != nil {
				m.Text += *text
			}
		}
		out[i] = m.Message
	}
	return out
}
