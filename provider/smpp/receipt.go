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
	// maxReference is the longest message_id that a peer may use (section 5.2.23).
	maxReference = 64
	// maxReceiptWord and maxReceiptDigits bound each half of a receipt's code: UNDELIVERABLE is as
	// long as any, and no number of a subscriber is as short.
	maxReceiptWord, maxReceiptDigits = 13, 5
)

// parseReceipt reads the receipt that a deliver_sm or data_sm carries. It is false for what is
// none, and for a receipt that does not say which message it is about.
//
// The parameters receipted_message_id and message_state (sections 5.3.2.12 and 5.3.2.35) come
// first. What they leave open is taken from the text, whose format appendix B only suggests: keys in
// any case and order, any of them missing.
func parseReceipt(m *pdu.Message, now time.Time) (provider.Receipt, bool) {
	id, named := m.TLVs.Get(pdu.TagReceiptedMessageID)
	if !carriesReceipt(m.ESMClass, named) {
		return provider.Receipt{}, false
	}
	text := m.Payload()
	if message := afterKey(text, "text"); message != nil {
		text = text[:len(text)-len(message)] // how the message itself began is not ours to read
	}
	r := provider.Receipt{Reference: reference(id), At: now}
	if r.Reference == "" {
		r.Reference = reference(receiptField(text, "id"))
	}
	state := receiptWord(receiptField(text, "stat"))
	if value, ok := m.TLVs.Uint(pdu.TagMessageState); ok && messageState(value) != "" {
		state = messageState(value)
	}
	r.Code = receiptCode(state, receiptError(m, text))
	if m.ESMClass&pdu.ESMClassTypeMask != pdu.ESMClassIntermediate {
		r.State = stateOf(state)
	}
	return r, r.Reference != ""
}

// carriesReceipt goes by the message type of esm_class (section 5.2.12). Some SMSCs leave it at
// "default" and only name the message.
func carriesReceipt(esmClass byte, named bool) bool {
	switch esmClass & pdu.ESMClassTypeMask {
	case pdu.ESMClassReceipt, pdu.ESMClassIntermediate:
		return true
	case pdu.ESMClassDefault:
		return named
	}
	return false
}

// reference is the id of a receipt as it stands: whoever writes it in another base or length
// than in submit_sm_resp is not understood.
func reference(id []byte) string {
	if end := bytes.IndexByte(id, 0); end >= 0 {
		id = id[:end]
	}
	id = bytes.TrimSpace(id)
	if len(id) > maxReference || !printableASCII(string(id)) {
		return ""
	}
	return string(id)
}

// receiptField returns the value of a key in the text of a receipt: what stands behind
// "key:" up to the next space. It is nil when the key is missing or has no value, which is when
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
	if len(value) == 0 || apart && bytes.IndexByte(value, ':') >= 0 {
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
		if rest := bytes.TrimLeft(text[end:], blanks); len(rest) > 0 && rest[0] == ':' {
			return rest[1:]
		}
	}
	return nil
}

// blanks may stand around a colon.
const blanks = " \t"

// separates reports whether an octet may stand between two fields of a receipt.
func separates(b byte) bool { return b <= ' ' || b == ',' || b == ';' || b == '|' }

// messageState is the word of appendix B for a message_state (section 5.2.28; 0 and 9 are of
// SMPP 5.0).
func messageState(value uint16) string {
	words := [...]string{"SCHEDLD", "ENROUTE", "DELIVRD", "EXPIRED", "DELETED", "UNDELIV", "ACCEPTD", "UNKNOWN", "REJECTD", "SKIPPED"}
	if int(value) < len(words) {
		return words[value]
	}
	return ""
}

// stateOf says what the word of a state means. UNKNOWN is what an SMSC says that does not know, and
// ACCEPTD, which the standard calls an end, is what many say while they still try.
func stateOf(word string) provider.ReceiptState {
	switch {
	case strings.HasPrefix(word, "DELIV"): // DELIVRD, DELIVERD, DELIVERED
		return provider.Delivered
	case strings.HasPrefix(word, "UNDELIV"), strings.HasPrefix(word, "REJECT"):
		return provider.Undelivered
	}
	switch word {
	case "EXPIRED", "DELETED", "SKIPPED", "FAILED":
		return provider.Undelivered
	}
	return provider.Pending
}

// receiptError is the error that a receipt names: err in the text, or else the code in
// network_error_code (section 5.3.2.31: one octet for the network, two for the code).
func receiptError(m *pdu.Message, text []byte) string {
	if word := receiptWord(receiptField(text, "err")); word != "" {
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

// receiptWord is a value that may be shown, in capitals: letters and few digits. Anything else, such as
// a number of a subscriber in a strange place, is dropped.
func receiptWord(value []byte) string {
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
