package smpp

import (
	"bytes"
	"fmt"
	"math/big"
	"strings"

	"dispatcher/provider/smpp/pdu"
)

// IDForm is how the id in receipts differs from the message_id of submit_sm_resp.
type IDForm uint8

const (
	// AsIs means that both are equal.
	AsIs IDForm = iota
	// HexToDecimal makes the hexadecimal number of the receipt decimal, as submit_sm_resp had it.
	HexToDecimal
	// DecimalToHex makes the decimal number of the receipt hexadecimal.
	DecimalToHex
)

// IDCase is the case of hexadecimal digits in submit_sm_resp.
type IDCase uint8

const (
	// KeepCase leaves letters unchanged; digits from DecimalToHex are lower case.
	KeepCase IDCase = iota
	// LowerCase uses lower case.
	LowerCase
	// UpperCase uses upper case.
	UpperCase
)

// IDSource is which id of a receipt is used.
type IDSource uint8

const (
	// AnyID is receipted_message_id, or else the id in the text.
	AnyID IDSource = iota
	// TextID is the id in the text alone.
	TextID
	// ParameterID is receipted_message_id alone.
	ParameterID
)

// ReceiptID converts the id of a receipt into the message_id of submit_sm_resp, which is the
// reference of a message. The zero value uses it unchanged.
type ReceiptID struct {
	From IDSource
	Form IDForm
	Case IDCase
	// Width removes leading zeros and then pads with zeros to that length. Zero changes nothing.
	Width int
}

func (r ReceiptID) validate() error {
	switch {
	case r.Form > DecimalToHex || r.Case > UpperCase || r.From > ParameterID:
		return fmt.Errorf("receipt_id: unknown form %d, %d or %d", r.Form, r.Case, r.From)
	case r.Width < 0 || r.Width > maxReference:
		return fmt.Errorf("receipt_id_width: %d is not between 1 and %d", r.Width, maxReference)
	}
	return nil
}

// reference is the id of a receipt in the form of submit_sm_resp; empty when the receipt has none.
func (r ReceiptID) reference(m *pdu.Message, text []byte) string {
	var id string
	if r.From != TextID {
		value, _ := m.TLVs.Get(pdu.TagReceiptedMessageID)
		id = cleanID(value)
	}
	if id == "" && r.From != ParameterID {
		id = cleanID(receiptField(text, "id"))
	}
	if id == "" || r == (ReceiptID{}) {
		return id
	}
	return r.convert(id)
}

// cleanID is the id of an answer or receipt if it is printable, without spaces and not too long;
// otherwise empty.
func cleanID(id []byte) string {
	if end := bytes.IndexByte(id, 0); end >= 0 {
		id = id[:end]
	}
	id = bytes.TrimSpace(id)
	if len(id) > maxReference || !printableASCII(string(id)) || bytes.IndexByte(id, ' ') >= 0 {
		return ""
	}
	return string(id)
}

// convert leaves an id unchanged if it is not a number of the expected base.
func (r ReceiptID) convert(id string) string {
	out := id
	switch r.Form {
	case HexToDecimal:
		out = rebase(id, 16, 10)
	case DecimalToHex:
		out = rebase(id, 10, 16)
	case AsIs:
	}
	switch r.Case {
	case LowerCase:
		out = strings.ToLower(out)
	case UpperCase:
		out = strings.ToUpper(out)
	case KeepCase:
	}
	if r.Width == 0 {
		return out
	}
	out = strings.TrimLeft(out, "0")
	if missing := r.Width - len(out); missing > 0 {
		out = strings.Repeat("0", missing) + out
	}
	return out
}

// rebase writes a number in another base.
func rebase(id string, from, to int) string {
	digits := id
	if from == 16 {
		digits = strings.TrimPrefix(strings.TrimPrefix(id, "0x"), "0X")
	}
	if strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return id // SetString would accept a sign or an underscore
	}
	n, ok := new(big.Int).SetString(digits, from)
	if !ok {
		return id
	}
	if out := n.Text(to); len(out) <= maxReference {
		return out
	}
	return id
}
