package pdu

import (
	"bytes"
)

// Bits and values of esm_class, registered_delivery and data_coding that the
// dispatcher uses (sections 5.2.12, 5.2.17 and 5.2.19).
const (
	ESMClassDefault      byte = 0x00
	ESMClassReceipt      byte = 0x04 // deliver_sm carries an SMSC delivery receipt
	ESMClassHandsetAck   byte = 0x08 // deliver_sm carries a handset's automatic acknowledgement
	ESMClassUserAck      byte = 0x10 // deliver_sm carries a subscriber's manual acknowledgement
	ESMClassIntermediate byte = 0x20 // deliver_sm carries an intermediate notification
	ESMClassUDHI         byte = 0x40 // short_message starts with a user data header
	ESMClassTypeMask     byte = 0x3C // the bits that say what a deliver_sm carries

	ReceiptNone    byte = 0x00
	ReceiptFinal   byte = 0x01 // receipt on success and on failure
	ReceiptFailure byte = 0x02 // receipt on failure only
	ReceiptMask    byte = 0x03 // the bits that ask for final receipts

	CodingDefault  byte = 0x00 // the SMSC's default alphabet
	CodingASCII    byte = 0x01
	CodingLatin1   byte = 0x03
	CodingCyrillic byte = 0x06 // ISO 8859-5
	CodingHebrew   byte = 0x07 // ISO 8859-8
	CodingUCS2     byte = 0x08
)

// Message is the layout that submit_sm and deliver_sm share (sections 4.4.1 and
// 4.6.1). Decoded, ShortMessage and the values of TLVs alias the frame.
type Message struct {
	ServiceType          string
	Source               Address
	Dest                 Address
	ESMClass             byte
	ProtocolID           byte
	PriorityFlag         byte
	ScheduleDeliveryTime string
	ValidityPeriod       string // see FormatTime and FormatPeriod; empty is the SMSC's default
	RegisteredDelivery   byte
	ReplaceIfPresent     byte
	DataCoding           byte
	DefaultMsgID         byte
	ShortMessage         []byte // at most 254 octets; longer ones use TagMessagePayload
	TLVs                 TLVs
}

// ValidityOffset is where validity_period begins in the PDU of m.
func ValidityOffset(m *Message) int {
	const addresses, flags = 2 * 2, 3 // TON and NPI of both; esm_class, protocol_id, priority_flag
	// the ends of service_type, two addresses and schedule_delivery_time
	zeros := 4
	return HeaderSize + len(m.ServiceType) + len(m.Source.Addr) + len(m.Dest.Addr) +
		len(m.ScheduleDeliveryTime) + addresses + flags + zeros
}

func (m *Message) appendTo(dst []byte) (_ []byte, err error) {
	if dst, err = appendCString(dst, "service_type", m.ServiceType, maxServiceType); err != nil {
		return dst, err
	}
	if dst, err = m.Source.appendTo(dst, "source_addr", maxAddress); err != nil {
		return dst, err
	}
	if dst, err = m.Dest.appendTo(dst, "destination_addr", maxAddress); err != nil {
		return dst, err
	}
	dst = append(dst, m.ESMClass, m.ProtocolID, m.PriorityFlag)
	if dst, err = appendCString(dst, "schedule_delivery_time", m.ScheduleDeliveryTime,
		maxTime); err != nil {
		return dst, err
	}
	if dst, err = appendCString(dst, "validity_period", m.ValidityPeriod, maxTime); err != nil {
		return dst, err
	}
	if len(m.ShortMessage) > maxShortMessage {
		return dst, &FieldError{"short_message", "is too long"}
	}
	dst = append(dst, m.RegisteredDelivery, m.ReplaceIfPresent, m.DataCoding, m.DefaultMsgID,
		byte(len(m.ShortMessage)))
	return m.TLVs.appendTo(append(dst, m.ShortMessage...))
}

func (m *Message) parse(body []byte) error {
	c := cursor{rest: body}
	m.ServiceType = c.cstring("service_type")
	m.Source = c.address("source_addr")
	m.Dest = c.address("destination_addr")
	m.ESMClass = c.octet("esm_class")
	m.ProtocolID = c.octet("protocol_id")
	m.PriorityFlag = c.octet("priority_flag")
	m.ScheduleDeliveryTime = c.cstring("schedule_delivery_time")
	m.ValidityPeriod = c.cstring("validity_period")
	m.RegisteredDelivery = c.octet("registered_delivery")
	m.ReplaceIfPresent = c.octet("replace_if_present_flag")
	m.DataCoding = c.octet("data_coding")
	m.DefaultMsgID = c.octet("sm_default_msg_id")
	m.ShortMessage = c.octets("short_message", int(c.octet("sm_length")))
	m.TLVs = c.tlvs(m.TLVs)
	return c.err
}

// Payload returns the octets of the message: message_payload, or else short_message.
func (m *Message) Payload() []byte {
	if p, ok := m.TLVs.Get(TagMessagePayload); ok {
		return p
	}
	return m.ShortMessage
}

// Clone returns a copy that does not alias the frame.
func (m *Message) Clone() Message {
	c := *m
	c.ShortMessage = bytes.Clone(m.ShortMessage)
	c.TLVs = make(TLVs, len(m.TLVs))
	for i, t := range m.TLVs {
		c.TLVs[i] = TLV{Tag: t.Tag, Value: bytes.Clone(t.Value)}
	}
	return c
}

// SubmitSM hands a message to the SMSC (section 4.4).
type SubmitSM struct{ Message }

// CommandID implements Body.
func (*SubmitSM) CommandID() Command { return CommandSubmitSM }

// Parse reads a submit_sm body into s, whose TLV storage it uses again.
func (s *SubmitSM) Parse(body []byte) error { return s.parse(body) }

// DeliverSM hands a message or a receipt to the ESME (section 4.6).
type DeliverSM struct{ Message }

// CommandID implements Body.
func (*DeliverSM) CommandID() Command { return CommandDeliverSM }

// DataSM is the lean alternative to submit_sm and deliver_sm in both directions
// (section 4.7). Its content is TagMessagePayload.
type DataSM struct {
	ServiceType        string
	Source             Address
	Dest               Address
	ESMClass           byte
	RegisteredDelivery byte
	DataCoding         byte
	TLVs               TLVs
}

// CommandID implements Body.
func (*DataSM) CommandID() Command { return CommandDataSM }

func (d *DataSM) appendTo(dst []byte) (_ []byte, err error) {
	if dst, err = appendCString(dst, "service_type", d.ServiceType, maxServiceType); err != nil {
		return dst, err
	}
	if dst, err = d.Source.appendTo(dst, "source_addr", maxDataAddress); err != nil {
		return dst, err
	}
	if dst, err = d.Dest.appendTo(dst, "destination_addr", maxDataAddress); err != nil {
		return dst, err
	}
	return d.TLVs.appendTo(append(dst, d.ESMClass, d.RegisteredDelivery, d.DataCoding))
}

func (d *DataSM) parse(body []byte) error {
	c := cursor{rest: body}
	d.ServiceType = c.cstring("service_type")
	d.Source = c.address("source_addr")
	d.Dest = c.address("destination_addr")
	d.ESMClass = c.octet("esm_class")
	d.RegisteredDelivery = c.octet("registered_delivery")
	d.DataCoding = c.octet("data_coding")
	d.TLVs = c.tlvs(d.TLVs)
	return c.err
}

// Message returns d in the layout of deliver_sm, so that a receiver handles both
// alike; the content stays in TagMessagePayload.
func (d *DataSM) Message() Message {
	return Message{
		ServiceType: d.ServiceType, Source: d.Source, Dest: d.Dest, ESMClass: d.ESMClass,
		RegisteredDelivery: d.RegisteredDelivery, DataCoding: d.DataCoding, TLVs: d.TLVs,
	}
}

// MessageResp answers submit_sm, deliver_sm or data_sm. An error answer may come
// without a body (section 4.4.2); deliver_sm_resp has an unused, empty MessageID.
type MessageResp struct {
	Command   Command // one of the three responses
	MessageID string
	TLVs      TLVs
}

// CommandID implements Body.
func (m *MessageResp) CommandID() Command { return m.Command }

func (m *MessageResp) appendTo(dst []byte) ([]byte, error) {
	dst, err := appendCString(dst, "message_id", m.MessageID, maxMessageID)
	if err != nil {
		return dst, err
	}
	return m.TLVs.appendTo(dst)
}

// Parse reads the body of a response. A message_id that was read is kept even if the octets after
// it are damaged.
func (m *MessageResp) Parse(body []byte) error { return m.parse(body) }

func (m *MessageResp) parse(body []byte) error {
	m.MessageID, m.TLVs = "", m.TLVs[:0]
	if len(body) == 0 {
		return nil
	}
	c := cursor{rest: body}
	m.MessageID = c.looseCString("message_id")
	m.TLVs = c.tlvs(m.TLVs)
	return c.err
}

// MessageState is the state of a message as message_state and query_sm_resp have it (section
// 5.2.28; SMPP 5.0 section 4.7.15 added 0 and 9).
type MessageState byte

// The states.
const (
	StateScheduled     MessageState = 0
	StateEnroute       MessageState = 1
	StateDelivered     MessageState = 2
	StateExpired       MessageState = 3
	StateDeleted       MessageState = 4
	StateUndeliverable MessageState = 5
	StateAccepted      MessageState = 6
	StateUnknown       MessageState = 7
	StateRejected      MessageState = 8
	StateSkipped       MessageState = 9
)

// stateWords are how appendix B writes the states; SCHEDLD and SKIPPED are of SMPP 5.0.
var stateWords = [...]string{
	StateScheduled:     "SCHEDLD",
	StateEnroute:       "ENROUTE",
	StateDelivered:     "DELIVRD",
	StateExpired:       "EXPIRED",
	StateDeleted:       "DELETED",
	StateUndeliverable: "UNDELIV",
	StateAccepted:      "ACCEPTD",
	StateUnknown:       "UNKNOWN",
	StateRejected:      "REJECTD",
	StateSkipped:       "SKIPPED",
}

// Word returns the word of the text of a receipt (appendix B); empty for a value that the standard
// does not name.
func (s MessageState) Word() string {
	if int(s) < len(stateWords) {
		return stateWords[s]
	}
	return ""
}

// ParseState is the inverse of Word. Other words are StateUnknown.
func ParseState(word string) MessageState {
	for s, known := range stateWords {
		if known == word {
			return MessageState(s)
		}
	}
	return StateUnknown
}
