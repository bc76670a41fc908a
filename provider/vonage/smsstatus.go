package vonage

import (
	"dispatcher/provider"
	"dispatcher/provider/web"
)

// smsMeanings are the statuses of https://developer.vonage.com/api-errors/sms. Status 5, an internal error "whilst
// processing this message", does not say that it was not taken: it is Unknown, as is every status that is not listed.
// Statuses 2 and 3 do not tell which parameter is at fault: unless the text beside it does, it may be the sender, the validity
// or the callback of this channel. A prefix that Vonage does not know (6) another provider may.
var smsMeanings = map[string]web.Meaning{
	"1":  web.Throttled("faster than the account may send"),
	"2":  web.Refused("a parameter is missing"),
	"3":  web.Refused("a parameter is invalid"),
	"4":  web.Refused("the API refuses the credentials"),
	"6":  web.Unfit("the message cannot be processed, for instance for its prefix"),
	"7":  web.Rejected("the number is barred"),
	"8":  web.Refused("the account is suspended"),
	"9":  web.Refused("the account has not enough credit"),
	"10": web.Throttled("too many connections of the account"),
	"11": web.Refused("the account may not use this API"),
	"12": web.Unfit("the text is longer than Vonage takes"),
	"14": web.Refused("the signature does not hold"),
	"15": web.BadSender("the sender is not allowed"), // there, or any more: a number that has left the account
	"22": web.Refused("the network code does not fit"),
	"23": web.Refused("the callback URL is not accepted"),
	"29": web.Refused("the account is in demo mode and may not send to this number"),
	"32": web.Refused("signed and with a secret at once"),
	"33": web.Rejected("the number is deactivated"),
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
