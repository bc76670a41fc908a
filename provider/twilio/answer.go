package twilio

import (
	"encoding/json"
	"net/http"
	"strconv"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// created holds the used fields of a new Message.
type created struct {
	SID string `json:"sid"`
}

// fault is the body of every answer other than success.
type fault struct {
	Code int `json:"code"`
}

// Classify reads the answer to a submission. A message with a SID was accepted, whatever its
// status: receipts report the final state.
func (*api) Classify(a *web.Answer) provider.Result {
	if a.Status == http.StatusCreated || a.Status == http.StatusOK {
		var m created
		if err := json.Unmarshal(a.Body, &m); err != nil || m.SID == "" {
			return a.Unreadable("")
		}
		return provider.Result{Outcome: provider.Accepted, Reference: m.SID}
	}
	var f fault
	err := json.Unmarshal(a.Body, &f)
	if v, known := meanings[f.Code]; err == nil && known && certain(a) {
		return a.Result(v, strconv.Itoa(f.Code))
	}
	return classifyRest(a, f.Code)
}

// certain reports whether an answer with a code means that no message was created: a 4xx of Twilio,
// which no proxy may have sent. A 5xx leaves it open.
func certain(a *web.Answer) bool { return a.Status/100 == 4 && !web.MaybeFromProxy(a.Status) }

// classifyRest reads an answer whose code is not in the table, or that has none.
func classifyRest(a *web.Answer, n int) provider.Result {
	code := ""
	if n != 0 {
		code = strconv.Itoa(n)
	}
	if r, ok := a.ByStatus(code); ok {
		return r
	}
	if n != 0 && certain(a) {
		return a.Result(web.Refused("Twilio did not create the message"), code)
	}
	return a.Unreadable(code)
}

// meanings are the codes of the Message resource (Error and Warning Dictionary). Other codes are
// Refused if their status is 4xx. Rejected is only what no provider could send: another channel may
// send a text that is too long for Twilio, or a message whose sender is also the recipient. A code
// for a number that the account has lost blames the sender, even if the same code may mean that the
// sender does not suit one country; 21612 and 21657 mean only that.
var meanings = map[int]web.Meaning{
	// Unfit and not Throttled: messages between other numbers are still taken.
	14107: web.Unfit("too many messages between these two numbers"),
	20003: web.Refused("the credentials are wrong"),
	20005: web.Refused("the account is not active"),
	20404: web.Refused("there is no such account"),
	20429: web.Throttled("too many requests at once"),
	21211: web.Rejected("the recipient is not a valid number"),
	21212: web.BadSender("the sender is not valid"),
	21214: web.Rejected("the recipient cannot be reached"),
	21217: web.Rejected("the recipient is not a valid number"),
	21265: web.Rejected("the recipient is a short code"),
	21266: web.Unfit("recipient and sender are the same"),
	21267: web.BadSender("a trial account has no alphanumeric senders"),
	21408: web.Unfit("the account may not send to this region"),
	21601: web.BadSender("the sender cannot send SMS"),
	21602: web.Rejected("there is no text"),
	21603: web.Refused("there is no sender"),
	21604: web.Rejected("there is no recipient"),
	21605: web.Unfit("the text is longer than Twilio takes"),
	// or a short code cannot send to this country
	21606: web.BadSender("the sender is not the account's, or cannot send"),
	21608: web.Refused("a trial account sends to verified numbers only"),
	21609: web.Refused("the status callback is not a valid URL"),
	21610: web.Rejected("the recipient has unsubscribed"),
	21611: web.Throttled("the queue of this sender is full"),
	21612: web.Unfit("there is no route from this sender to the recipient"),
	21614: web.Rejected("the recipient is not a mobile number"),
	21617: web.Unfit("the text is longer than Twilio takes"),
	21619: web.Rejected("there is no text"),
	21624: web.Refused("the validity is out of range"),
	21635: web.Rejected("the recipient is a landline"),
	21657: web.Unfit("this country does not take such a sender"),
	21659: web.BadSender("the sender is not a number of Twilio"),
	21660: web.BadSender("the sender is not of this account"),
	21661: web.BadSender("the sender cannot send SMS"),
	21701: web.Refused("there is no such messaging service"),
	21703: web.Refused("the messaging service has no senders"),
	21704: web.Refused("the messaging service has no senders"),
	21705: web.Refused("the messaging service is not valid"),
	30001: web.Throttled("the queue is full"),
	30002: web.Refused("the account is suspended"),
	// with status 429, for hours
	63038: web.Refused("the account has used up its messages of the day"),
	90007: web.Refused("the validity is out of range"),
}

// states are the values of MessageStatus. All others are Pending.
var states = map[string]provider.ReceiptState{
	"delivered": provider.Delivered, "read": provider.Delivered,
	"undelivered": provider.Undelivered, "failed": provider.Undelivered,
	"canceled": provider.Undelivered,
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
	"30010": provider.Unspecified,   // above the allowed price
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
