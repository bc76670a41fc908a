package smpptest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"dispatcher/provider/smpp/pdu"
)

// Receipt is the later receipt of a submit. The zero value reports delivery at once.
type Receipt struct {
	Never bool // none is sent, except those of Again
	// Delay counts from the answer to the submit. A negative delay lets the receipt overtake a
	// delayed answer.
	Delay time.Duration
	State string // DELIVRD unless set; see appendix B of the standard
	Error string // err in the text; 000 unless set
	// NetworkError is sent as network_error_code, one octet for the network and two for the code,
	// unless it is empty.
	NetworkError string
	Intermediate bool         // an intermediate notification
	Form         *ReceiptForm // instead of the behaviour's
	// Again are further receipts of the same submit: repetitions, contradictions, or receipts out
	// of order.
	Again []Receipt
}

// word is the state in the receipt.
func (r *Receipt) word() string { return cmp.Or(r.State, pdu.StateDelivered.Word()) }

// ReceiptStyle is how much a receipt contains, and where.
type ReceiptStyle uint8

const (
	// FullReceipt is the text of appendix B with every key, and the parameters that 3.4 added.
	FullReceipt ReceiptStyle = iota
	// TextReceipt is the text alone, as before 3.4.
	TextReceipt
	// ParameterReceipt has parameters and no text.
	ParameterReceipt
	// LowerCaseReceipt is the text in lower case.
	LowerCaseReceipt
	// SparseReceipt is a text of id and stat.
	SparseReceipt
	// ReorderedReceipt is a text with other separators, spaces and order, and capital keys.
	ReorderedReceipt
)

// ReceiptForm is how a carrier writes its receipts. The zero value is as the standard suggests.
type ReceiptForm struct {
	Style ReceiptStyle
	// ID writes the message_id of submit_sm_resp as the receipt does: in another base, with zeros.
	// Unset, it is the same.
	ID      func(messageID string) string
	DataSM  bool // data_sm instead of deliver_sm
	Untyped bool // esm_class does not say that it is a receipt
	// Echo is a parameter that receipts return as it was submitted; zero is none.
	Echo pdu.Tag
}

// receiptTime is the format of times in receipts (appendix B).
const receiptTime = "0601021504"

// compose writes the receipt of an accepted submit.
func (f ReceiptForm) compose(s *Submit, r *Receipt, done time.Time) pdu.Message {
	id := s.MessageID
	if f.ID != nil {
		id = f.ID(id)
	}
	m := pdu.Message{
		Source: pdu.Address{TON: 1, NPI: 1, Addr: s.To}, Dest: pdu.Address{Addr: s.From},
		ESMClass: pdu.ESMClassReceipt,
	}
	switch {
	case f.Untyped:
		m.ESMClass = pdu.ESMClassDefault
	case r.Intermediate:
		m.ESMClass = pdu.ESMClassIntermediate
	}
	m.ShortMessage = []byte(f.text(id, s, r, done))
	if f.Style == FullReceipt || f.Style == ParameterReceipt {
		m.TLVs = pdu.TLVs{
			pdu.CString(pdu.TagReceiptedMessageID, id),
			pdu.Uint8(pdu.TagMessageState, byte(pdu.ParseState(r.word()))),
		}
	}
	if r.NetworkError != "" {
		m.TLVs = append(m.TLVs,
			pdu.TLV{Tag: pdu.TagNetworkErrorCode, Value: []byte(r.NetworkError)})
	}
	if f.Echo != 0 && s.Echo != "" {
		m.TLVs = append(m.TLVs, pdu.CString(f.Echo, s.Echo))
	}
	return m
}

func (f ReceiptForm) text(id string, s *Submit, r *Receipt, done time.Time) string {
	delivered, state, failure := 0, r.word(), cmp.Or(r.Error, "000")
	if state == pdu.StateDelivered.Word() {
		delivered = 1
	}
	submitted, ended := s.At.UTC().Format(receiptTime), done.UTC().Format(receiptTime)
	switch f.Style {
	case ParameterReceipt:
		return ""
	case SparseReceipt:
		return "id:" + id + " stat:" + state
	case ReorderedReceipt:
		return fmt.Sprintf("STAT: %s, ERR: %s; DONE DATE: %s; ID: %s; DLVRD: %03d", state, failure,
			ended, id, delivered)
	case FullReceipt, TextReceipt, LowerCaseReceipt:
	}
	text := fmt.Sprintf("id:%s sub:001 dlvrd:%03d submit date:%s done date:%s stat:%s err:%s text:",
		id, delivered, submitted, ended, state, failure)
	if f.Style == LowerCaseReceipt {
		return strings.ToLower(text)
	}
	return text
}

// body is the operation that carries the message.
func (r *receipt) body(s *Server, m pdu.Message) pdu.Body {
	form := s.script.Load().ReceiptForm
	if r.Form != nil {
		form = *r.Form
	}
	if !form.DataSM {
		return &pdu.DeliverSM{Message: m}
	}
	content := pdu.TLV{Tag: pdu.TagMessagePayload, Value: m.ShortMessage}
	return &pdu.DataSM{
		ServiceType: m.ServiceType, Source: m.Source, Dest: m.Dest, ESMClass: m.ESMClass,
		DataCoding: m.DataCoding,
		TLVs:       append(m.TLVs, content),
	}
}
