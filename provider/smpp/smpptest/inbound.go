package smpptest

import (
	"encoding/binary"
	"time"

	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// Inbound is a message of a subscriber.
type Inbound struct {
	SystemID string // of the account that gets it; empty for any
	From, To string // digits
	Text     string
	// ID is sent as receipted_message_id, as some SMSCs do, unless it is empty.
	ID string
	// Reference is shared by the parts of a long text. SAR sends them with sar_* parameters instead
	// of a user data header, Wide with a reference of 16 bits.
	Reference uint16
	SAR, Wide bool
	DataSM    bool // data_sm instead of deliver_sm
}

// SendInbound sends a message to a receiving bind of the account, at once or when there is one, and
// again until it is accepted. It returns the number of its parts.
func (s *Server) SendInbound(in Inbound) (parts int) {
	now := time.Now()
	messages := in.messages(s.cfg.Alphabet)
	for i := range messages {
		s.receipts.schedule.add(now, &receipt{
			systemID: in.SystemID, number: -1, inbound: &messages[i],
			Receipt: Receipt{Form: &ReceiptForm{DataSM: in.DataSM}},
		})
	}
	return len(messages)
}

// messages splits and encodes the text like an SMSC whose data_coding 0 is that alphabet.
func (in *Inbound) messages(defaultAlphabet Alphabet) []pdu.Message {
	rules := sms.Rules{}
	if in.Wide {
		rules.Reference = sms.Reference16
	}
	cut := rules.Split(in.Text)
	list := make([]pdu.Message, len(cut.Segments))
	for i, segment := range cut.Segments {
		out := &list[i]
		out.Source, out.Dest = pdu.Address{TON: 1, NPI: 1, Addr: in.From}, pdu.Address{Addr: in.To}
		if in.ID != "" {
			out.TLVs = append(out.TLVs, pdu.CString(pdu.TagReceiptedMessageID, in.ID))
		}
		var header []byte
		if len(cut.Segments) > 1 {
			header = in.place(out, byte(len(cut.Segments)), byte(i+1))
		}
		out.DataCoding, out.ShortMessage = encodeText(cut.Alphabet, defaultAlphabet, header, segment)
	}
	return list
}

// place sets which part a message is, and returns its user data header.
func (in *Inbound) place(out *pdu.Message, total, number byte) []byte {
	if in.SAR {
		out.TLVs = append(out.TLVs, pdu.Uint16(pdu.TagSARMsgRefNum, in.Reference),
			pdu.Uint8(pdu.TagSARTotalSegments, total), pdu.Uint8(pdu.TagSARSegmentSeqnum, number))
		return nil
	}
	out.ESMClass |= pdu.ESMClassUDHI
	if in.Wide {
		return []byte{6, 8, 4, byte(in.Reference >> 8), byte(in.Reference), total, number}
	}
	return []byte{5, 0, 3, byte(in.Reference), total, number}
}

// encodeText is the inverse of decodeText.
func encodeText(
	a sms.Alphabet, defaultAlphabet Alphabet, dst []byte, text string,
) (coding byte, octets []byte) {
	if a == sms.GSM7 && defaultAlphabet == GSM7 {
		if octets, err := sms.AppendGSM7(dst, text); err == nil {
			return pdu.CodingDefault, octets
		}
	}
	return pdu.CodingUCS2, sms.AppendUCS2(dst, text)
}

// concatenation is the position of a part.
type concatenation struct {
	reference   uint16
	part, parts int
	shift       sms.Shift // the tables of a text in GSM-7
}

// content separates a message into its concatenation and its text octets. A header that cannot be
// read stays in the text, as a handset would show it.
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
			return concatenation{
				reference: uint16(data[0]), part: int(data[2]), parts: int(data[1]),
			}
		case h[0] == 8 && len(data) == 4:
			return concatenation{
				reference: binary.BigEndian.Uint16(data), part: int(data[3]), parts: int(data[2]),
			}
		}
		h = h[2+len(data):]
	}
	return concatenation{part: 1, parts: 1}
}

// decodeText reads octets by the server's alphabets. Octets that are not a text in the alphabet
// become one character each.
func decodeText(coding byte, defaultAlphabet Alphabet, shift sms.Shift, octets []byte) string {
	if (coding == pdu.CodingDefault || coding&0xFC == 0xF0) && defaultAlphabet == GSM7 {
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

// Message is the text that a handset shows after joining the parts.
type Message struct {
	From, To string
	Text     string
	Parts    int
	Complete bool // every part arrived
	Repeated int  // parts that arrived more than once
}

// Join joins the parts of accepted submits like a handset, in the order in which their messages
// began. The parts of one message share sender, recipient, reference and number of parts.
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
			m = &message{
				Message: Message{From: s.From, To: s.To, Parts: s.Parts},
				texts:   make([]*string, s.Parts), left: s.Parts,
			}
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
