package twilio

import (
	"dispatcher/provider"
	"dispatcher/provider/web"
)

// verdict is what an error code of the API means for a submission.
type verdict struct {
	outcome provider.Outcome
	why     string
	blame   web.Blame // what it is about, where it is Refused
}

func rejected(why string) verdict  { return verdict{outcome: provider.Rejected, why: why} }
func throttled(why string) verdict { return verdict{outcome: provider.Throttled, why: why} }
func refused(why string) verdict   { return about(web.OnChannel, why) }
func unfit(why string) verdict     { return about(web.OnMessage, why) }
func badSender(why string) verdict { return about(web.OnSender, why) }

func about(b web.Blame, why string) verdict {
	return verdict{outcome: provider.Refused, why: why, blame: b}
}

// result is what an answer with the code means.
func (v *verdict) result(a *web.Answer, code string) provider.Result {
	r := a.Verdict(v.outcome, code, v.why)
	r.Unfit = a.Unfit(v.blame)
	return r
}

// verdicts are the codes that the Message resource answers with (Error and Warning Dictionary). A code that is not
// here is Refused when its status is 4xx. Rejected is only what no provider could send: a text too long for Twilio, or a
// sender that is also the recipient, may go over another channel. What a number answers that is not the account's any more
// blames the sender, even where the same code may mean one country; 21612 and 21657 mean nothing else.
var verdicts = map[int]verdict{
	14107: unfit("too many messages between these two numbers"), // others go on: it is no wish to slow down
	20003: refused("the credentials are wrong"),
	20005: refused("the account is not active"),
	20404: refused("there is no such account"),
	20429: throttled("too many requests at once"),
	21211: rejected("the recipient is no valid number"),
	21212: badSender("the sender is not valid"),
	21214: rejected("the recipient cannot be reached"),
	21217: rejected("the recipient is no valid number"),
	21265: rejected("the recipient is a short code"),
	21266: unfit("recipient and sender are the same"),
	21267: badSender("a trial account has no alphanumeric senders"),
	21408: unfit("the account may not send to this region"),
	21601: badSender("the sender cannot send SMS"),
	21602: rejected("there is no text"),
	21603: refused("there is no sender"),
	21604: rejected("there is no recipient"),
	21605: unfit("the text is longer than Twilio takes"),
	21606: badSender("the sender is not the account's, or cannot send"), // or, of a short code, not to this country
	21608: refused("a trial account sends to verified numbers only"),
	21609: refused("the status callback is no valid URL"),
	21610: rejected("the recipient has unsubscribed"),
	21611: throttled("the queue of this sender is full"),
	21612: unfit("there is no route from this sender to the recipient"),
	21614: rejected("the recipient is no mobile number"),
	21617: unfit("the text is longer than Twilio takes"),
	21619: rejected("there is no text"),
	21624: refused("the validity is out of range"),
	21635: rejected("the recipient is a landline"),
	21657: unfit("this country does not take such a sender"),
	21659: badSender("the sender is no number of Twilio"),
	21660: badSender("the sender is not of this account"),
	21661: badSender("the sender cannot send SMS"),
	21701: refused("there is no such messaging service"),
	21703: refused("the messaging service has no senders"),
	21704: refused("the messaging service has no senders"),
	21705: refused("the messaging service is not valid"),
	30001: throttled("the queue is full"),
	30002: refused("the account is suspended"),
	63038: refused("the account has used up its messages of the day"), // with status 429, and for hours
	90007: refused("the validity is out of range"),
}

// states are the values of MessageStatus. What is not here is Pending.
var states = map[string]provider.ReceiptState{
	"delivered": provider.Delivered, "read": provider.Delivered,
	"undelivered": provider.Undelivered, "failed": provider.Undelivered, "canceled": provider.Undelivered,
}

// causes are the values of ErrorCode of messages that were not delivered.
var causes = map[string]provider.Cause{
	"21211": provider.UnknownNumber,
	"21610": provider.OptedOut,
	"21614": provider.NotMobile,
	"21635": provider.NotMobile,
	"30001": provider.NetworkError,  // queue overflow
	"30002": provider.NoCredit,      // account suspended
	"30003": provider.Absent,        // unreachable handset
	"30004": provider.Blocked,       // message blocked
	"30005": provider.UnknownNumber, // unknown handset
	"30006": provider.NotMobile,     // landline or unreachable carrier
	"30007": provider.Spam,          // filtered
	"30008": provider.Unspecified,   // unknown error
	"30009": provider.NetworkError,  // missing segment
	"30010": provider.Unspecified,   // dearer than the price allowed
	"30018": provider.BadSender,     // sender needs registration
	"30024": provider.BadSender,     // numeric sender not provisioned
	"30032": provider.BadSender,     // toll-free number not verified
	"30034": provider.BadSender,     // unregistered 10DLC number
	"30035": provider.BadSender,     // registration pending
	"30036": provider.Expired,       // validity period
	"30038": provider.Spam,          // filtered as one-time password
	"30410": provider.NetworkError,  // provider timed out
	"30450": provider.Blocked,       // fraud protection
	"30453": provider.Blocked,       // fraud protection
}
