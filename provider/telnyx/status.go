package telnyx

import (
	"dispatcher/provider"
	"dispatcher/provider/web"
)

// verdict is what an error code of the API means for a submission.
type verdict struct {
	outcome provider.Outcome
	why     string
	blame   web.Blame // what it is about, where it is Refused
	of      subject
}

// subject is what an error is about, where the same code serves several things.
type subject uint8

const (
	oneThing     subject = iota
	eitherNumber         // the recipient when the error points at it, otherwise, as far as is known, the sender
)

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

// verdicts are the codes that POST /v2/messages answers with (API errors, and the Messaging Error Code
// Reference). A code that is not here is Refused when its status is 4xx. Rejected is only what no provider could send: a
// text that is too long for Telnyx, or that it blocks, may go over another channel.
var verdicts = map[string]verdict{
	"10001": {outcome: provider.Refused, why: "the recipient's number is not active", blame: web.OnMessage, of: eitherNumber},
	"10002": {outcome: provider.Rejected, why: "the recipient is no valid number", of: eitherNumber},
	"10009": refused("the credentials are wrong"),
	"10010": refused("the credentials may not send"),
	"10011": throttled("too many requests"),
	"10016": {outcome: provider.Rejected, why: "the recipient is no valid number", of: eitherNumber},
	"20002": refused("the API key is revoked"),
	"20006": refused("the access token has expired"),
	"20012": refused("the account is not active"),
	"20013": refused("the account is blocked"),
	"20014": refused("the account is not verified"),
	"20015": refused("the account cannot send SMS"),
	"20016": refused("the account is not verified"),
	"20017": refused("the account is not verified"),
	"20100": refused("the account has no funds"),
	"40001": rejected("the recipient takes no SMS"),
	"40009": unfit("the text is not valid for Telnyx"),
	"40012": rejected("the recipient is no valid number"),
	"40013": badSender("the sender is not valid"),
	"40100": badSender("the sender cannot send SMS"),
	"40300": rejected("the recipient has sent STOP"),
	"40301": rejected("the recipient takes no such message"),
	"40302": unfit("the text is longer than Telnyx takes"),
	"40305": badSender("the sender is not valid, or not the profile's"),
	"40306": badSender("the profile has no alphanumeric sender"),
	"40309": unfit("the profile may not send to this region"),
	"40310": rejected("the recipient is no valid number"),
	"40312": refused("the profile is disabled"),
	"40314": refused("the account may not send messages"),
	"40315": badSender("the sender is unhealthy"),
	"40316": rejected("there is no text"),
	"40318": throttled("the queue is full"),
	"40319": unfit("the sender and the recipient do not fit"), // an alphanumeric one, and a short code
	"40320": badSender("the sender cannot be used yet"),
	"40321": refused("the profile has no usable senders"),
	"40322": unfit("Telnyx blocks the text"),
	"40328": unfit("the text is longer than Telnyx takes"),
	"40329": badSender("the toll-free sender is not verified"),
	"40333": refused("the profile has spent its limit of the day"), // with status 429, and until midnight UTC
}

// states are the statuses of a recipient. What is not here is Pending: also delivery_unconfirmed, with which
// Telnyx says that nobody will ever tell it.
var states = map[string]provider.ReceiptState{
	"delivered": provider.Delivered,
	"expired":   provider.Undelivered, "cancelled": provider.Undelivered,
	"sending_failed": provider.Undelivered, "delivery_failed": provider.Undelivered,
}

// causes are the codes of messages that were not delivered.
var causes = map[string]provider.Cause{
	"40001": provider.NotMobile,     // not routable
	"40002": provider.Spam,          // temporarily
	"40003": provider.Spam,          // permanently
	"40004": provider.Blocked,       // rejected by destination
	"40005": provider.Expired,       // in transmission
	"40006": provider.NetworkError,  // recipient's server unavailable
	"40007": provider.NetworkError,  // loop
	"40008": provider.Unspecified,   // undeliverable
	"40009": provider.Unspecified,   // invalid body
	"40010": provider.BadSender,     // not registered for 10DLC
	"40011": provider.Spam,          // above a carrier's rate
	"40012": provider.UnknownNumber, // invalid destination
	"40013": provider.BadSender,     // invalid source
	"40014": provider.Expired,       // in the queue
	"40015": provider.Spam,          // internal filter
	"40016": provider.BadSender,     // above T-Mobile's limit of the brand
	"40017": provider.Spam,          // AT&T
	"40018": provider.BadSender,     // above AT&T's limit of the brand
	"40100": provider.BadSender,     // number not enabled
	"40300": provider.OptedOut,      // STOP
	"40301": provider.NotMobile,     // type not supported by the recipient
	"40305": provider.BadSender,     // invalid sender
	"40310": provider.UnknownNumber, // invalid recipient
	"40315": provider.BadSender,     // unhealthy sender
	"40322": provider.Spam,          // content
	"40329": provider.BadSender,     // toll-free number not verified
	"20100": provider.NoCredit,      // no funds
	"20012": provider.NoCredit,      // account inactive
}
