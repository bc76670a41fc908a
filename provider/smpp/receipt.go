package smpp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

const (
	// maxReference is the longest message_id that is read. A peer may use 64 octets (section 5.2.23); some use more.
	maxReference = provider.MaxReference
	// maxReceiptWord and maxReceiptDigits bound each half of a receipt's code: UNDELIVERABLE is as
	// long as any, and no number of a subscriber is as short.
	maxReceiptWord, maxReceiptDigits = 13, 5
)

// parseReceipt reads the receipt that a deliver_sm or data_sm carries. It is false for what is none. One that does not say
// which message it is about, in a way that can be read, has neither Reference nor Key: whoever takes it counts it.
//
// The parameters receipted_message_id and message_state (sections 5.3.2.12 and 5.3.2.35) come
// first. What they leave open is taken from the text, whose format appendix B only suggests: keys in
// any case and order, any of them missing.
func (c *Config) parseReceipt(m *pdu.Message, now time.Time) (provider.Receipt, bool) {
	text := receiptText(m)
	if !c.carriesReceipt(m, text) {
		return provider.Receipt{}, false
	}
	state := safeReceiptWord(receiptField(text, "stat"))
	if len(state) == 1 && state[0] <= '9' {
		state = pdu.MessageState(state[0] - '0').Word()
	}
	if value, ok := m.TLVs.Uint(pdu.TagMessageState); ok && stateWord(value) != "" {
		state = stateWord(value)
	}
	r := provider.Receipt{
		Reference: c.ReceiptID.reference(m, text), Key: keyOf(m.TLVs, c.ReceiptKeyTLV), At: now,
		Code: receiptCode(state, receiptError(m, text)),
	}
	r.State, r.Cause = c.meaning(m, state, r.Code)
	return r, true
}

// receiptText is the text of a receipt up to where it repeats how the message itself began, which is not ours to
// read.
func receiptText(m *pdu.Message) []byte {
	text := m.Payload()
	if message := afterKey(text, "text"); message != nil {
		text = text[:len(text)-len(message)]
	}
	return text
}

// stateWord is the word for a message_state.
func stateWord(value uint16) string {
	if value > 0xFF {
		return ""
	}
	return pdu.MessageState(value).Word()
}

// carriesReceipt goes by the message type of esm_class (section 5.2.12). Some SMSCs leave it at
// "default" and only name the message and its state, or not even that: see Config.UntypedReceipts. Others
// name the messages of subscribers, which have no state.
func (c *Config) carriesReceipt(m *pdu.Message, text []byte) bool {
	switch m.ESMClass & pdu.ESMClassTypeMask {
	case pdu.ESMClassReceipt, pdu.ESMClassIntermediate:
		return true
	case pdu.ESMClassDefault:
		_, stated := m.TLVs.Get(pdu.TagMessageState)
		return named(m) && (stated || receiptField(text, "stat") != nil) || c.UntypedReceipts && readsAsReceipt(text)
	}
	return false
}

// readsAsReceipt reports whether a text has the keys without which a receipt would say nothing, and one more.
func readsAsReceipt(text []byte) bool {
	return receiptField(text, "id") != nil && receiptField(text, "stat") != nil &&
		(receiptField(text, "err") != nil || receiptField(text, "dlvrd") != nil)
}

// receiptField returns the value of a key in the text of a receipt: what stands behind
// "key:" or "key=" up to the next space. It is nil when the key is missing or has no value, which is when
// the next key follows.
func receiptField(text []byte, key string) []byte {
	value := afterKey(text, key)
	apart := len(value) > 0 && separates(value[0])
	value = bytes.TrimLeft(value, blanks)
	for i, b := range value {
		if separates(b) {
			value = value[:i]
			break
		}
	}
	if len(value) == 0 || apart && bytes.ContainsAny(value, equals) {
		return nil
	}
	return value
}

// afterKey is the text behind "key:", in whatever case; nil when the key does not begin a word there.
func afterKey(text []byte, key string) []byte {
	for at := range text {
		end := at + len(key)
		if end > len(text) {
			break
		}
		if at > 0 && !separates(text[at-1]) || !bytes.EqualFold(text[at:end], []byte(key)) {
			continue
		}
		if rest := bytes.TrimLeft(text[end:], blanks); len(rest) > 0 && strings.IndexByte(equals, rest[0]) >= 0 {
			return rest[1:]
		}
	}
	return nil
}

// equals stand between a key and its value, and blanks around them.
const equals, blanks = ":=", " \t"

// separates reports whether an octet may stand between two fields of a receipt.
func separates(b byte) bool { return b <= ' ' || b == ',' || b == ';' || b == '|' }

// receiptError is the error that a receipt names: err in the text, or else the code in
// network_error_code (section 5.3.2.31: one octet for the network, two for the code).
func receiptError(m *pdu.Message, text []byte) string {
	if word := safeReceiptWord(receiptField(text, "err")); word != "" {
		return word
	}
	if v, ok := m.TLVs.Get(pdu.TagNetworkErrorCode); ok && len(v) == 3 {
		return fmt.Sprintf("%03d", binary.BigEndian.Uint16(v[1:]))
	}
	return ""
}

// receiptCode joins what there is of both: "UNDELIV/012".
func receiptCode(state, failure string) string {
	if failure == "" {
		return state
	}
	return state + "/" + failure
}

// safeReceiptWord is a value that may be shown, in capitals: letters and few digits. Anything else, such as
// a number of a subscriber in a strange place, is dropped.
func safeReceiptWord(value []byte) string {
	digits := 0
	for _, b := range value {
		switch {
		case b >= '0' && b <= '9':
			digits++
		case b|0x20 < 'a' || b|0x20 > 'z':
			return ""
		}
	}
	if len(value) > maxReceiptWord || digits > maxReceiptDigits {
		return ""
	}
	return string(bytes.ToUpper(value))
}
