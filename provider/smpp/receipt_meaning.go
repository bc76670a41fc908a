package smpp

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// ReceiptMeaning is what a receipt says about a message.
type ReceiptMeaning struct {
	State provider.ReceiptState
	Cause provider.Cause // of Undelivered
}

// ReceiptMeanings are a carrier's own words. A key is "UNDELIV/012" for that word with that error, "/012" for that
// error beside any word, or "UNDELIV" for the word whatever the error; they are looked up in this order. Words
// stand in capitals.
type ReceiptMeanings map[string]ReceiptMeaning

func (t ReceiptMeanings) validate() error {
	for key, m := range t {
		word, failure, _ := strings.Cut(key, "/")
		if key == "" || key == "/" || safeReceiptWord([]byte(word)) != word || safeReceiptWord([]byte(failure)) != failure {
			return fmt.Errorf("receipt_meanings: %q is no word, no error such as /012 and no such pair", key)
		}
		if m.State > provider.Undelivered || m.Cause != provider.Unspecified && m.State != provider.Undelivered {
			return fmt.Errorf("receipt_meanings: %s: the state %v has no cause", key, m.State)
		}
	}
	return nil
}

// find looks a code up that receiptCode made.
func (t ReceiptMeanings) find(code string) (m ReceiptMeaning, ok bool) {
	if len(t) == 0 {
		return m, false
	}
	if m, ok = t[code]; ok {
		return m, true
	}
	slash := strings.IndexByte(code, '/')
	if slash < 0 {
		return m, false
	}
	if m, ok = t[code[slash:]]; ok {
		return m, true
	}
	m, ok = t[code[:slash]]
	return m, ok
}

// meaning says what a receipt with that word means. An intermediate notification is no end whatever it says
// (section 5.2.17).
func (c *Config) meaning(m *pdu.Message, word, code string) (provider.ReceiptState, provider.Cause) {
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

// stateOf says what the word of a state means. UNKNOWN is what an SMSC says that does not know, and
// ACCEPTD, which the standard calls an end, is what many say while they still try.
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

// causeOf goes by the error that a receipt names, where it is known to be one of MAP.
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
	case 3, 8, 33, 34, 35, 36: // unknownMSC, roamingNotAllowed, messageWaitingListFull, systemFailure, data
		return provider.NetworkError
	}
	return provider.Unspecified
}
