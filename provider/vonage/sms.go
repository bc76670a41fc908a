package vonage

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// shortMessages is the SMS API.
type shortMessages struct{ cfg Config }

// Compose writes a submission as a form.
func (sm shortMessages) Compose(s *provider.Submission) (*web.Request, error) {
	return sm.compose(s, time.Now())
}

func (sm shortMessages) compose(s *provider.Submission, now time.Time) (*web.Request, error) {
	o, err := sm.cfg.prepare(s)
	if err != nil {
		return nil, err
	}
	form := url.Values{
		"api_key": {sm.cfg.APIKey}, "api_secret": {sm.cfg.APISecret}, "from": {o.from}, "to": {o.to},
		"text": {s.Text},
		"type": {o.encoding}, "status-report-req": {"false"},
	}
	if s.Key != "" {
		form.Set("client-ref", s.Key)
	}
	if left := lifetime(s.Ends(), now); left > 0 {
		form.Set("ttl", strconv.FormatInt(left.Milliseconds(), 10))
	}
	if sm.cfg.acceptsCallbacks() {
		form.Set("status-report-req", "true")
		form.Set("callback", sm.cfg.Callback)
	}
	return &web.Request{
		Method: http.MethodPost, URL: "/sms/json", Body: []byte(form.Encode()),
		Header: http.Header{
			"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"},
		},
	}, nil
}

// smsAnswer has one entry per part of the text. The text of an error may contain a number; only the
// wait, and whether an invalid parameter is the recipient, are read from it.
type smsAnswer struct {
	Messages []smsPart `json:"messages"`
}

type smsPart struct {
	ID     string `json:"message-id"`
	Status string `json:"status"`
	Error  string `json:"error-text"`
}

// Classify reads the answer to a submission. The SMS API always answers 200: the status of each
// part decides, and only "0" is an acceptance.
func (sm shortMessages) Classify(got *web.Answer) provider.Result {
	var parsed smsAnswer
	if json.Unmarshal(got.Body, &parsed) != nil || len(parsed.Messages) == 0 {
		if r, ok := got.ByStatus(""); ok {
			return r
		}
		return got.Unreadable("")
	}
	if len(parsed.Messages) == 1 {
		return parsed.Messages[0].classify(got)
	}
	return combine(got, parsed.Messages)
}

func (p *smsPart) classify(got *web.Answer) provider.Result {
	if p.Status == "0" {
		if got.Status != http.StatusOK || p.ID == "" {
			return got.Unreadable(p.Status)
		}
		return provider.Result{Outcome: provider.Accepted, Reference: p.ID}
	}
	v, ok := smsMeanings[p.Status]
	if !ok || web.MaybeFromProxy(got.Status) {
		return got.Unreadable(p.Status)
	}
	if p.Status == invalidParameter && ofRecipient.MatchString(p.Error) {
		return got.Result(web.Rejected("the recipient is invalid"), p.Status)
	}
	r := got.Result(v, p.Status)
	if r.Outcome == provider.Throttled && r.RetryAfter == 0 {
		r.RetryAfter = wait(p.Error)
	}
	return r
}

// invalidParameter is the status of any invalid parameter. ofRecipient matches the text of one that
// is the recipient, whom no other channel would reach.
const invalidParameter = "3"

var ofRecipient = regexp.MustCompile(`^(?i)to address\b`)

// pause matches the wait in milliseconds.
var pause = regexp.MustCompile(`please wait \[\s*([0-9]{1,7})\s*\] and retry`)

func wait(text string) time.Duration {
	found := pause.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	milliseconds, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	return time.Duration(milliseconds) * time.Millisecond
}

// combine reads the answer to a text of several parts. If only some parts were taken, the others
// cannot be sent alone: they are Rejected, which ends the message, and the accepted parts stay
// recorded.
func combine(got *web.Answer, parsed []smsPart) provider.Result {
	parts := make([]provider.Part, len(parsed))
	var worst provider.Result
	accepted := 0
	for i := range parsed {
		r := parsed[i].classify(got)
		parts[i] = provider.Part{Index: i, Outcome: r.Outcome, Reference: r.Reference, Code: r.Code}
		switch {
		case r.Outcome == provider.Accepted:
			accepted++
		case worst.Err == nil || r.Outcome == provider.Unknown ||
			worst.Unfit && r.Outcome == provider.Refused && !r.Unfit:
			worst = r
		}
	}
	switch {
	case accepted == len(parts):
		return provider.Result{Outcome: provider.Accepted, Parts: parts}
	case worst.Outcome == provider.Unknown:
		worst.Parts = parts
		return worst
	case accepted == 0:
		return worst
	}
	for i := range parts {
		if parts[i].Outcome != provider.Accepted {
			parts[i].Outcome = provider.Rejected
		}
	}
	r := got.Result(web.Rejected("only some parts were taken, and the others cannot be sent alone"),
		worst.Code)
	r.Code, r.Parts = worst.Code, parts
	return r
}

// smsMeanings are the statuses of https://developer.vonage.com/api-errors/sms. Status 5, an
// internal error "whilst processing this message", does not say that it was not taken: it is
// Unknown, as is every unlisted status. Statuses 2 and 3 do not name the parameter at fault: unless
// the text does, it may be the sender, the validity or the callback of this channel. Another
// provider may know a prefix that Vonage does not know (6), or reach a number that Vonage bars (7).
var smsMeanings = map[string]web.Meaning{
	"1":  web.Throttled("faster than the account may send"),
	"2":  web.Refused("a parameter is missing"),
	"3":  web.Refused("a parameter is invalid"),
	"4":  web.Refused("the API refuses the credentials"),
	"6":  web.Unfit("the message cannot be processed, for instance for its prefix"),
	"7":  web.Unfit("the recipient is on a blocklist of Vonage"),
	"8":  web.Refused("the account is suspended"),
	"9":  web.Refused("the account has not enough credit"),
	"10": web.Throttled("too many connections of the account"),
	"11": web.Refused("the account may not use this API"),
	"12": web.Unfit("the text is longer than Vonage takes"),
	"14": web.Refused("the signature does not hold"),
	// or no longer: a number that has left the account
	"15": web.BadSender("the sender is not allowed"),
	"22": web.Refused("the network code does not fit"),
	"23": web.Refused("the callback URL is not accepted"),
	"29": web.Refused("the account is in demo mode and may not send to this number"),
	"32": web.Refused("signed and with a secret at once"),
	"33": web.Rejected("the number is deactivated"),
}

// receiptState translates the status and the err-code of a delivery receipt of the SMS API, by
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
	// accepted, buffered, unknown and unlisted statuses
	return provider.Pending, provider.Unspecified
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
