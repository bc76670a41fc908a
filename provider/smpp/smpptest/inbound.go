package smpptest

import (
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
	// Reference ties the parts of a long text together. SAR sends them with sar_* parameters instead of a
	// user data header, Wide with a reference of 16 bits.
	Reference uint16
	SAR, Wide bool
	DataSM    bool // data_sm instead of deliver_sm
}

// SendInbound sends a message to a bind of the account that receives, at once or when there is one, and again until
// it is taken. It returns the number of its parts.
func (s *Server) SendInbound(m Inbound) (parts int) {
	now := time.Now()
	messages := m.messages(s.cfg.Alphabet)
	for i := range messages {
		s.receipts.schedule.add(now, &receipt{
			systemID: m.SystemID, number: -1, inbound: &messages[i], Receipt: Receipt{Form: &ReceiptForm{DataSM: m.DataSM}},
		})
	}
	return len(messages)
}

// messages cuts and encodes the text as an SMSC does whose data_coding 0 is that alphabet.
func (m *Inbound) messages(behindZero Alphabet) []pdu.Message {
	rules := sms.Rules{}
	if m.Wide {
		rules.Reference = sms.Reference16
	}
	cut := rules.Split(m.Text)
	list := make([]pdu.Message, len(cut.Segments))
	for i, segment := range cut.Segments {
		out := &list[i]
		out.Source, out.Dest = pdu.Address{TON: 1, NPI: 1, Addr: m.From}, pdu.Address{Addr: m.To}
		if m.ID != "" {
			out.TLVs = append(out.TLVs, pdu.CString(pdu.TagReceiptedMessageID, m.ID))
		}
		var header []byte
		if len(cut.Segments) > 1 {
			header = m.place(out, byte(len(cut.Segments)), byte(i+1))
		}
		out.DataCoding, out.ShortMessage = encodeText(cut.Alphabet, behindZero, header, segment)
	}
	return list
}

// place says which part a message is, and returns its user data header.
func (m *Inbound) place(out *pdu.Message, total, number byte) []byte {
	if m.SAR {
		out.TLVs = append(out.TLVs, pdu.Uint16(pdu.TagSARMsgRefNum, m.Reference),
			pdu.Uint8(pdu.TagSARTotalSegments, total), pdu.Uint8(pdu.TagSARSegmentSeqnum, number))
		return nil
	}
	out.ESMClass |= pdu.ESMClassUDHI
	if m.Wide {
		return []byte{6, 8, 4, byte(m.Reference >> 8), byte(m.Reference), total, number}
	}
	return []byte{5, 0, 3, byte(m.Reference), total, number}
}

// encodeText is the inverse of decodeText.
func encodeText(a sms.Alphabet, behindZero Alphabet, dst []byte, text string) (coding byte, octets []byte) {
	if a == sms.GSM7 && behindZero == GSM7 {
		if octets, err := sms.AppendGSM7(dst, text); err == nil {
			return pdu.CodingDefault, octets
		}
	}
	return pdu.CodingUCS2, sms.AppendUCS2(dst, text)
}
