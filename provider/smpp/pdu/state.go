package pdu

// MessageState is the state of a message as message_state and query_sm_resp have it (section 5.2.28; SMPP 5.0
// section 4.7.15 added 0 and 9).
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
	StateScheduled: "SCHEDLD", StateEnroute: "ENROUTE", StateDelivered: "DELIVRD", StateExpired: "EXPIRED",
	StateDeleted: "DELETED", StateUndeliverable: "UNDELIV", StateAccepted: "ACCEPTD", StateUnknown: "UNKNOWN",
	StateRejected: "REJECTD", StateSkipped: "SKIPPED",
}

// Word returns the word of the text of a receipt (appendix B); empty for a value that the standard does not name.
func (s MessageState) Word() string {
	if int(s) < len(stateWords) {
		return stateWords[s]
	}
	return ""
}

// ParseState is the inverse of Word. What it does not know is StateUnknown.
func ParseState(word string) MessageState {
	for s, known := range stateWords {
		if known == word {
			return MessageState(s)
		}
	}
	return StateUnknown
}
