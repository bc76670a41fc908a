package envelope

import "dispatcher/provider/sms"

// badSender says what a sender has to be.
const badSender = "from is no sender id: a name of up to 11 characters of the GSM alphabet, " +
	"a short code of 3 to 8 digits, " +
	"or a number of 8 to 15 digits"

// CheckSender is why no network could show the sender of a message that decodes well; nil when one
// can. It is apart from Decode, which reads what was stored before this rule, too.
func CheckSender(m *Message) *Problem {
	if sms.KindOf(m.From) == sms.BadSender {
		return &Problem{Code: BadSender, Detail: badSender}
	}
	return nil
}
