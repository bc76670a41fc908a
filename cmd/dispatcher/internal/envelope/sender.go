package envelope

import "dispatcher/provider/sms"

// badSender says what a sender must look like.
const badSender = "from is not a sender id: a name of up to 11 characters of the GSM alphabet, " +
	"a short code of 3 to 8 digits, " +
	"or a number of 8 to 15 digits"

// CheckSender says why no network could show the sender of a valid message; nil when one can. It is
// separate from Decode, so that the dead row of such a message has its tenant.
func CheckSender(m *Message) *Problem {
	if sms.KindOf(m.From) == sms.BadSender {
		return &Problem{Code: BadSender, Detail: badSender}
	}
	return nil
}
