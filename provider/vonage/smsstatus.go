package vonage

import (
	"dispatcher/provider"
	"dispatcher/provider/web"
)

// verdict is what a code of Vonage means for a submission.
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

// smsVerdicts are the statuses of https://developer.vonage.com/api-errors/sms. Status 5, an internal error "whilst
// processing this message", does not say that it was not taken: it is Unknown, as is every status that is not listed.
// Statuses 2 and 3 do not tell which parameter is at fault: unless the text beside it does, it may be the sender, the validity
// or the callback of this channel. A prefix that Vonage does not know (6) another provider may.
var smsVerdicts = map[string]verdict{
	"1":  throttled("faster than the account may send"),
	"2":  refused("a parameter is missing"),
	"3":  refused("a parameter is invalid"),
	"4":  refused("the API refuses the credentials"),
	"6":  unfit("the message cannot be processed, for instance for its prefix"),
	"7":  rejected("the number is barred"),
	"8":  refused("the account is suspended"),
	"9":  refused("the account has not enough credit"),
	"10": throttled("too many connections of the account"),
	"11": refused("the account may not use this API"),
	"12": unfit("the text is longer than Vonage takes"),
	"14": refused("the signature does not hold"),
	"15": badSender("the sender is not allowed"), // there, or any more: a number that has left the account
	"22": refused("the network code does not fit"),
	"23": refused("the callback URL is not accepted"),
	"29": refused("the account is in demo mode and may not send to this number"),
	"32": refused("signed and with a secret at once"),
	"33": rejected("the number is deactivated"),
}

// receiptState translates the status of a delivery receipt of the SMS API and the err-code beside it, by
// https://developer.vonage.com/messaging/sms/guides/delivery-receipts.
func receiptState(status, code string) (provider.ReceiptState, provider.Cause) {
	switch status {
	case "delivered":
		return provider.Delivered, provider.Unspecified
	case "expired":
		return provider.Undelivered, provider.Expired
	case "failed", "rejected":
		return provider.Undelivered, receiptCauses[code]
	}
	return provider.Pending, provider.Unspecified // accepted, buffered, unknown and what is not listed
}

var receiptCauses = map[string]provider.Cause{
	"2":  provider.Absent,        // absent, temporarily
	"3":  provider.UnknownNumber, // absent for good: no longer active
	"4":  provider.Blocked,       // barred by the user
	"5":  provider.NetworkError,  // portability
	"6":  provider.Spam,
	"7":  provider.Absent, // handset busy
	"8":  provider.NetworkError,
	"9":  provider.OptedOut,      // asked not to get messages of this service
	"11": provider.NetworkError,  // no route
	"12": provider.UnknownNumber, // no route to this number
	"13": provider.Blocked,       // age restriction
	"14": provider.Blocked,       // by the carrier
	"15": provider.Blocked,       // the recipient's prepaid plan is empty
	"50": provider.BadSender,     // entity id of the sender
	"51": provider.BadSender,     // header id, which is the sender
	"52": provider.Spam,          // content filter
	"53": provider.Blocked,       // no consent
	"54": provider.Blocked,       // regulation
	"99": provider.NetworkError,
}
