package telnyx

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// accepted holds the used fields of the answer to an accepted message.
type accepted struct {
	Data struct {
		ID string `json:"id"`
	} `json:"data"`
}

// refusal is the body of every answer other than success.
type refusal struct {
	Errors []fault `json:"errors"`
}

// fault is one error. Its code is a number in quotes, in some answers without quotes.
type fault struct {
	Code   json.RawMessage `json:"code"`
	Source struct {
		Pointer string `json:"pointer"`
	} `json:"source"`
}

func (f *fault) code() string { return strings.Trim(string(f.Code), `"`) }

// code returns the code of the first error, which decides; empty if there is none.
func (r *refusal) code() string {
	if len(r.Errors) == 0 {
		return ""
	}
	return r.Errors[0].code()
}

// unexpectedError and requestTimeout are codes, with any status, for a failure on the way. They do
// not say whether the message was taken.
const (
	unexpectedError = "10007"
	requestTimeout  = "10008"
)

func (r *refusal) uncertain() bool {
	return slices.ContainsFunc(r.Errors,
		func(f fault) bool { return f.code() == unexpectedError || f.code() == requestTimeout })
}

// Classify reads the answer to a submission.
func (*api) Classify(a *web.Answer) provider.Result {
	if a.Status == http.StatusOK || a.Status == http.StatusCreated ||
		a.Status == http.StatusAccepted {
		var m accepted
		if err := json.Unmarshal(a.Body, &m); err != nil || m.Data.ID == "" {
			return a.Unreadable("")
		}
		return provider.Result{Outcome: provider.Accepted, Reference: m.Data.ID}
	}
	var r refusal
	if err := json.Unmarshal(a.Body, &r); err != nil {
		r = refusal{}
	}
	return r.classify(a)
}

// classify reads a failed answer. Requests are checked before anything is queued: a 4xx with errors
// means that nothing was queued, unless it may come from a proxy.
func (r *refusal) classify(a *web.Answer) provider.Result {
	code := r.code()
	if r.uncertain() {
		return a.Unreadable(code)
	}
	certain := a.Status/100 == 4 && !web.MaybeFromProxy(a.Status)
	if v, known := meanings[code]; known && certain {
		if slices.Contains(ofEither, code) &&
			!strings.HasPrefix(r.Errors[0].Source.Pointer, "/to") {
			v = web.BadSender("the sender, or perhaps the recipient, is not a valid or active number")
		}
		return withRateLimitReset(a, a.Result(v, code))
	}
	if plain, ok := a.ByStatus(code); ok {
		return withRateLimitReset(a, plain)
	}
	if code != "" && certain {
		return a.Result(web.Refused("Telnyx did not take the message"), code)
	}
	return a.Unreadable(code)
}

// withRateLimitReset adds the wait in x-ratelimit-reset, in seconds, if the answer has no
// Retry-After.
func withRateLimitReset(a *web.Answer, r provider.Result) provider.Result {
	if r.Outcome != provider.Throttled || r.RetryAfter > 0 {
		return r
	}
	seconds, err := strconv.Atoi(strings.TrimSpace(a.Header.Get("X-Ratelimit-Reset")))
	if err == nil && seconds > 0 && seconds <= longestReset {
		r.RetryAfter = time.Duration(seconds) * time.Second
	}
	return r
}

// longestReset is longer than any rate limit, in seconds: a larger number is another kind of time.
const longestReset = 24 * 60 * 60

// meanings are the codes of POST /v2/messages (API errors, and the Messaging Error Code Reference).
// Other codes are Refused if their status is 4xx. Rejected is only what no provider could send:
// another channel may send a text that is too long for Telnyx or that Telnyx blocks.
var meanings = map[string]web.Meaning{
	"10001": web.Unfit("the recipient's number is not active"),
	"10002": web.Rejected("the recipient is not a valid number"),
	"10009": web.Refused("the credentials are wrong"),
	"10010": web.Refused("the credentials may not send"),
	"10011": web.Throttled("too many requests"),
	"10016": web.Rejected("the recipient is not a valid number"),
	"20002": web.Refused("the API key is revoked"),
	"20006": web.Refused("the access token has expired"),
	"20012": web.Refused("the account is not active"),
	"20013": web.Refused("the account is blocked"),
	"20014": web.Refused("the account is not verified"),
	"20015": web.Refused("the account cannot send SMS"),
	"20016": web.Refused("the account is not verified"),
	"20017": web.Refused("the account is not verified"),
	"20100": web.Refused("the account has no funds"),
	"40001": web.Rejected("the recipient takes no SMS"),
	"40009": web.Unfit("the text is not valid for Telnyx"),
	"40012": web.Rejected("the recipient is not a valid number"),
	"40013": web.BadSender("the sender is not valid"),
	"40100": web.BadSender("the sender cannot send SMS"),
	"40300": web.Rejected("the recipient has sent STOP"),
	"40301": web.Rejected("the recipient takes no such message"),
	"40302": web.Unfit("the text is longer than Telnyx takes"),
	"40305": web.BadSender("the sender is not valid, or not the profile's"),
	"40306": web.BadSender("the profile has no alphanumeric sender"),
	"40309": web.Unfit("the profile may not send to this region"),
	"40310": web.Rejected("the recipient is not a valid number"),
	"40312": web.Refused("the profile is disabled"),
	"40314": web.Refused("the account may not send messages"),
	"40315": web.BadSender("the sender is unhealthy"),
	"40316": web.Rejected("there is no text"),
	"40318": web.Throttled("the queue is full"),
	// an alphanumeric one, and a short code
	"40319": web.Unfit("the sender and the recipient do not fit"),
	"40320": web.BadSender("the sender cannot be used yet"),
	"40321": web.Refused("the profile has no usable senders"),
	"40322": web.Unfit("Telnyx blocks the text"),
	"40328": web.Unfit("the text is longer than Telnyx takes"),
	"40329": web.BadSender("the toll-free sender is not verified"),
	// with status 429, until midnight UTC
	"40333": web.Refused("the profile has spent its limit of the day"),
}

// ofEither are codes about a number that is either the recipient's or the sender's. They mean the
// recipient, as in the table, only if the error points to it; otherwise they are about the sender.
var ofEither = []string{"10001", "10002", "10016"}

// states are the statuses of a recipient. Others are Pending, including delivery_unconfirmed, after
// which Telnyx sends no final status.
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
