package smpp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

const (
	// maxReference is the longest message_id that is read. The standard allows 64 octets (section
	// 5.2.23); some peers use more.
	maxReference = provider.MaxReference
	// maxReceiptWord and maxReceiptDigits bound each half of a receipt's code: no word is longer than
	// UNDELIVERABLE, and no subscriber's number has so few digits.
	maxReceiptWord, maxReceiptDigits = 13, 5
)

// parseReceipt reads the receipt in a deliver_sm or data_sm; false if it is none. A receipt whose
// message cannot be identified has neither Reference nor Key; the caller counts it. So is an
// acknowledgement of a handset that is no receipt, because a carrier may have meant one.
// The parameters receipted_message_id and message_state (sections 5.3.2.12 and 5.3.2.35) have
// priority. The rest is read from the text, whose format appendix B only suggests: keys in any case
// and order, any of them missing.
func (c *Config) parseReceipt(m *pdu.Message, now time.Time) (provider.Receipt, bool) {
	text := receiptText(m)
	if !c.carriesReceipt(m, text) {
		acknowledged := m.ESMClass&pdu.ESMClassTypeMask == pdu.ESMClassHandsetAck
		return provider.Receipt{At: now}, acknowledged
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

// receiptText is the text of a receipt without the beginning of the message that it may repeat,
// which must not be read as fields.
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

// carriesReceipt recognises a receipt by the message type in esm_class (section 5.2.12). Some SMSCs
// leave it at "default", or take that of a handset, and only name the message and its state, or not
// even that: see Config.UntypedReceipts. Others put a message id into the messages of subscribers,
// too, which have no state.
func (c *Config) carriesReceipt(m *pdu.Message, text []byte) bool {
	switch m.ESMClass & pdu.ESMClassTypeMask {
	case pdu.ESMClassReceipt, pdu.ESMClassIntermediate:
		return true
	case pdu.ESMClassDefault, pdu.ESMClassHandsetAck:
		_, stated := m.TLVs.Get(pdu.TagMessageState)
		return named(m) && (stated || receiptField(text, "stat") != nil) ||
			c.UntypedReceipts && readsAsReceipt(text)
	}
	return false
}

// readsAsReceipt reports whether a text has the keys that a receipt needs, and one more.
func readsAsReceipt(text []byte) bool {
	return receiptField(text, "id") != nil && receiptField(text, "stat") != nil &&
		(receiptField(text, "err") != nil || receiptField(text, "dlvrd") != nil)
}

// receiptField returns the value of a key in the text of a receipt: what follows "key:" or "key="
// up to the next space. It is nil if the key is missing or has no value, that is, if the next key
// follows.
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

// afterKey is the text after "key:", in any case; nil if the key does not start a word.
func afterKey(text []byte, key string) []byte {
	for at := range text {
		end := at + len(key)
		if end > len(text) {
			break
		}
		if at > 0 && !separates(text[at-1]) || !bytes.EqualFold(text[at:end], []byte(key)) {
			continue
		}
		if rest := bytes.TrimLeft(text[end:], blanks); len(rest) > 0 &&
			strings.IndexByte(equals, rest[0]) >= 0 {
			return rest[1:]
		}
	}
	return nil
}

// equals may separate a key from its value, with blanks around them.
const equals, blanks = ":=", " \t"

// separates reports whether an octet may stand between two fields of a receipt.
func separates(b byte) bool { return b <= ' ' || b == ',' || b == ';' || b == '|' }

// receiptError is the error in a receipt: err in the text, or else network_error_code (section
// 5.3.2.31: one octet for the network, two for the code).
func receiptError(m *pdu.Message, text []byte) string {
	if word := safeReceiptWord(receiptField(text, "err")); word != "" {
		return word
	}
	if v, ok := m.TLVs.Get(pdu.TagNetworkErrorCode); ok && len(v) == 3 {
		return fmt.Sprintf("%03d", binary.BigEndian.Uint16(v[1:]))
	}
	return ""
}

// receiptCode joins state and error: "UNDELIV/012".
func receiptCode(state, failure string) string {
	if failure == "" {
		return state
	}
	return state + "/" + failure
}

// safeReceiptWord is a value that may be shown, in capitals: letters and few digits. Anything else,
// such as a phone number in an odd place, becomes empty.
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

// ReceiptMeaning is the meaning of a receipt for its message.
type ReceiptMeaning struct {
	State provider.ReceiptState
	Cause provider.Cause // of Undelivered
}

// ReceiptMeanings are a carrier's own states. A key is "UNDELIV/012" for that state with that
// error, "/012" for that error with any state, or "UNDELIV" for the state with any error. They are
// looked up in this order. States are in capitals.
type ReceiptMeanings map[string]ReceiptMeaning

func (rm ReceiptMeanings) validate() error {
	for key, m := range rm {
		word, failure, _ := strings.Cut(key, "/")
		if key == "" || key == "/" || safeReceiptWord([]byte(word)) != word ||
			safeReceiptWord([]byte(failure)) != failure {
			return fmt.Errorf(
				"receipt_meanings: %q is not a word, no error such as /012 and no such pair", key)
		}
		if m.State > provider.Undelivered ||
			m.Cause != provider.Unspecified && m.State != provider.Undelivered {
			return fmt.Errorf("receipt_meanings: %s: the state %v has no cause", key, m.State)
		}
	}
	return nil
}

// find returns the meaning of a code that receiptCode made.
func (rm ReceiptMeanings) find(code string) (m ReceiptMeaning, ok bool) {
	if len(rm) == 0 {
		return m, false
	}
	if m, ok = rm[code]; ok {
		return m, true
	}
	slash := strings.IndexByte(code, '/')
	if slash < 0 {
		return m, false
	}
	if m, ok = rm[code[slash:]]; ok {
		return m, true
	}
	m, ok = rm[code[:slash]]
	return m, ok
}

// meaning is the meaning of a receipt with that state. An intermediate notification is never final
// (section 5.2.17).
func (c *Config) meaning(
	m *pdu.Message, word, code string,
) (provider.ReceiptState, provider.Cause) {
	if m.ESMClass&pdu.ESMClassTypeMask == pdu.ESMClassIntermediate {
		return provider.Pending, provider.Unspecified
	}
	if own, ok := c.ReceiptMeanings.find(code); ok {
		return own.State, own.Cause
	}
	state, cause := stateOf(word)
	if state == provider.Undelivered && cause == provider.Unspecified {
		cause = c.causeOf(m, code)
	}
	return state, cause
}

// stateOf is the meaning of a state's word. UNKNOWN means that the SMSC does not know. ACCEPTD is
// final in the standard, but many SMSCs send it while they still try.
func stateOf(word string) (provider.ReceiptState, provider.Cause) {
	switch {
	case strings.HasPrefix(word, "DELIV"): // DELIVRD, DELIVERD, DELIVERED
		return provider.Delivered, provider.Unspecified
	case strings.HasPrefix(word, "UNDELIV"), strings.HasPrefix(word, "REJECT"):
		return provider.Undelivered, provider.Unspecified
	case strings.HasPrefix(word, "NOCRED"): // gateways that resell
		return provider.Undelivered, provider.NoCredit
	}
	switch word {
	case "EXPIRED":
		return provider.Undelivered, provider.Expired
	case "DELETED":
		return provider.Undelivered, provider.Deleted
	case "SKIPPED", "FAILED":
		return provider.Undelivered, provider.Unspecified
	case "SYSERR":
		return provider.Undelivered, provider.NetworkError
	}
	return provider.Pending, provider.Unspecified
}

// networkGSM is the network type of a network_error_code that is a MAP error (section 5.3.2.31).
const networkGSM = 3

// causeOf reads the error of a receipt if it is known to be a MAP error.
func (c *Config) causeOf(m *pdu.Message, code string) provider.Cause {
	if v, ok := m.TLVs.Get(pdu.TagNetworkErrorCode); ok && len(v) == 3 && v[0] == networkGSM {
		return causeOfMAP(int(binary.BigEndian.Uint16(v[1:])))
	}
	if _, failure, ok := strings.Cut(code, "/"); ok && c.GSMErrors {
		if n, err := strconv.Atoi(failure); err == nil {
			return causeOfMAP(n)
		}
	}
	return provider.Unspecified
}

// causeOfMAP translates a MAP error (3GPP TS 29.002 section 17.6.6).
func causeOfMAP(n int) provider.Cause {
	switch n {
	case 1, 5: // unknownSubscriber, unidentifiedSubscriber
		return provider.UnknownNumber
	case 6, 27, 31: // absentSubscriberSM, absentSubscriber, subscriberBusyForMT-SMS
		return provider.Absent
	case 9, 12, 13, 15: // illegalSubscriber, illegalEquipment, callBarred, cug-Reject
		return provider.Blocked
	case 10, 11, 21: // bearer or teleservice not provisioned, facilityNotSupported
		return provider.NotMobile
	// unknownMSC, roamingNotAllowed, messageWaitingListFull, systemFailure, data
	case 3, 8, 33, 34, 35, 36:
		return provider.NetworkError
	}
	return provider.Unspecified
}
