package vonage

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// messages is the Messages API.
type messages struct {
	cfg   Config
	login *login
}

func newMessages(cfg Config) messages { return messages{cfg: cfg, login: &login{cfg: cfg}} }

// message is the body of a submission.
type message struct {
	MessageType    string     `json:"message_type"`
	Channel        string     `json:"channel"`
	To             string     `json:"to"`
	From           string     `json:"from"`
	Text           string     `json:"text"`
	ClientRef      string     `json:"client_ref,omitempty"`
	TTL            int64      `json:"ttl,omitempty"` // seconds
	SMS            messageSMS `json:"sms"`
	WebhookURL     string     `json:"webhook_url,omitempty"`
	WebhookVersion string     `json:"webhook_version,omitempty"`
}

type messageSMS struct {
	EncodingType string `json:"encoding_type"`
}

// Compose writes a submission as JSON.
func (ms messages) Compose(s *provider.Submission) (*web.Request, error) {
	return ms.compose(s, time.Now())
}

func (ms messages) compose(s *provider.Submission, now time.Time) (*web.Request, error) {
	o, err := ms.cfg.prepare(s)
	if err != nil {
		return nil, err
	}
	m := message{
		MessageType: "text", Channel: "sms", To: o.to, From: o.from, Text: s.Text, ClientRef: s.Key,
		TTL: int64(lifetime(s.Ends(), now) / time.Second), SMS: messageSMS{o.encoding},
	}
	if ms.cfg.acceptsCallbacks() {
		m.WebhookURL, m.WebhookVersion = ms.cfg.Callback, "v1"
	}
	body, err := json.Marshal(&m)
	if err != nil {
		return nil, errors.New("the message cannot be written as JSON")
	}
	authorization, err := ms.login.header(now)
	if err != nil {
		return nil, err
	}
	return &web.Request{
		Method: http.MethodPost, URL: "/v1/messages", Body: body,
		Header: http.Header{
			"Authorization": {authorization}, "Content-Type": {"application/json"},
			"Accept": {"application/json"},
		},
	}, nil
}

// messagesAnswer is the id of an accepted message, or a problem (RFC 7807). The detail of a problem
// may contain a number and is not read.
type messagesAnswer struct {
	UUID string `json:"message_uuid"`
	Type string `json:"type"`
}

// Classify reads the answer to a submission.
func (ms messages) Classify(got *web.Answer) provider.Result {
	var parsed messagesAnswer
	readable := json.Unmarshal(got.Body, &parsed) == nil
	code := problemCode(parsed.Type)
	switch got.Status {
	case http.StatusAccepted:
		if !readable || parsed.UUID == "" {
			return got.Unreadable("")
		}
		return provider.Result{Outcome: provider.Accepted, Reference: parsed.UUID}
	case http.StatusPaymentRequired:
		return got.Result(web.Refused("the account has not enough credit"), code)
	case http.StatusNotFound:
		return got.Result(web.Refused("the API has no such address"), code)
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return unprocessable(got, code)
	}
	if r, ok := got.ByStatus(code); ok {
		return r
	}
	return got.Unreadable(code)
}

// problemCode is the end of a problem's address: "1120" of ".../api-errors/messages#1120".
func problemCode(address string) string {
	_, code, _ := strings.Cut(address, "#")
	return code
}

// unprocessable reads a 422 or a 400 by its code. An unlisted or unreadable code is Unknown: some
// codes come from a carrier that may have taken the message.
func unprocessable(got *web.Answer, code string) provider.Result {
	if v, ok := messagesMeanings[code]; ok {
		return got.Result(v, code)
	}
	return got.Unreadable(code)
}

// messagesMeanings are the codes of https://developer.vonage.com/api-errors and its page on
// messages by which a message was not taken. Rejected are those that blame the recipient. A prefix
// that Vonage does not know (1040), a number that it bars (1050), a text longer than it takes
// (1090) and its own filters are the channel's, and so is an invalid parameter (1020), which may be
// the sender.
//
// What is not here is Unknown: an internal error (1030), and errors after which the carrier may
// have taken the message. Those are a busy handset that is tried again (1220), a network error
// (1230), "already sent" (1320), the carrier's unknown error (1330), a provider that does not
// respond (1331), and a message that expired (1360).
var messagesMeanings = map[string]web.Meaning{
	"1000": web.Throttled("more than the account may send"),
	"1241": web.Throttled("more than the account may send"),
	"1472": web.Throttled("more than the account may send"),

	"1170": web.Rejected("the recipient is invalid"),
	"1190": web.Rejected("the number is no longer active"),
	"1240": web.Rejected("the recipient told to stop"),
	"1270": web.Rejected("the recipient may not get this for its age"),
	"1280": web.Rejected("the carrier bars the number"),
	"1290": web.Rejected("the recipient's plan has no credit"),
	"1310": web.Rejected("the recipient's device cannot receive it"),
	"1430": web.Rejected("the recipient is invalid"),

	"1010": web.Refused("a parameter is missing"),
	"1020": web.Refused("a parameter is invalid"),
	"1021": web.Refused("a parameter is invalid"),
	"1040": web.Unfit("the message cannot be processed, for instance for its prefix"),
	"1050": web.Unfit("the recipient is on a blocklist of Vonage"),
	"1060": web.Refused("the account is barred"),
	"1070": web.Refused("the account has not enough credit"),
	"1080": web.Refused("the account may not use this API"),
	"1090": web.Unfit("the text is longer than Vonage takes"),
	"1100": web.Refused("Vonage could not submit it"),
	"1110": web.Refused("the signature does not hold"),
	"1120": web.BadSender("the sender is not allowed"), // status 15 of the SMS API
	"1130": web.Refused("the validity is invalid"),
	"1140": web.Refused("the account may not do this"),
	"1150": web.Refused("a parameter is invalid"),
	"1160": web.Refused("the account may send to listed numbers only"),
	"1210": web.Unfit("a filter blocks it"),
	"1250": web.Unfit("there is no route"),
	"1251": web.Unfit("there is no route"),
	"1260": web.Unfit("the recipient cannot be reached from here"),
	"1282": web.Unfit("a filter blocks it"),
	"1300": web.Unfit("the recipient is not in the network of this channel"),
	"1400": web.Refused("the account may not send SMS"),
	"1410": web.Refused("a parameter is invalid"),
	"1420": web.BadSender("the sender is invalid"),
	"1440": web.Refused("the type of the message is not taken"),
	"1450": web.Refused("our reference is not taken"),
	"1460": web.Refused("the account has used up its messages of the day"),
	"1470": web.Unfit("a rule of the account blocks it"),
	"1473": web.Unfit("fraud protection blocks it"),
	// India's lists; in other countries the sender is allowed
	"1480": web.Unfit("the sender is not registered there"),
	"1481": web.Unfit("the sender is not registered there"),
	"1482": web.Unfit("the content is not registered there"),
	"1483": web.Unfit("the account has no consent on record there"),

	"account-suspended": web.Refused("the account is suspended"),
	"invalid-api-key":   web.Refused("the API refuses the credentials"),
	"invalid-params":    web.Refused("a parameter is invalid"),
	"low-balance":       web.Refused("the account has not enough credit"),
	"unprovisioned":     web.Refused("the account may not use this API"),
}

// statusState translates the status of a message and the code of its error. Some codes leave the
// outcome unknown, so it stays Pending: the message was already sent (1320), the carrier's error is
// not known (1330), or not all parts were reported in time (1490).
func statusState(status, code string) (provider.ReceiptState, provider.Cause) {
	switch status {
	case "delivered":
		return provider.Delivered, provider.Unspecified
	case "rejected", "undeliverable":
		switch code {
		case "1320", "1330", "1490":
		default:
			return provider.Undelivered, statusCauses[code]
		}
	}
	return provider.Pending, provider.Unspecified // submitted and unlisted statuses
}

var statusCauses = map[string]provider.Cause{
	"1030": provider.NetworkError,
	"1040": provider.UnknownNumber, // unknown prefix
	"1050": provider.Blocked,
	"1060": provider.NoCredit, // account barred
	"1070": provider.NoCredit,
	"1100": provider.NetworkError,
	"1120": provider.BadSender,
	"1160": provider.Blocked, // not in the account's list
	"1170": provider.UnknownNumber,
	"1180": provider.Absent,
	"1190": provider.UnknownNumber,
	"1200": provider.NetworkError, // portability
	"1210": provider.Spam,
	"1220": provider.Absent, // busy
	"1230": provider.NetworkError,
	"1240": provider.OptedOut,
	"1250": provider.NetworkError,
	"1251": provider.NetworkError,
	"1260": provider.NetworkError,
	"1270": provider.Blocked,
	"1280": provider.Blocked,
	"1282": provider.Spam,    // policy or content
	"1290": provider.Blocked, // the recipient's prepaid plan is empty
	"1300": provider.UnknownNumber,
	"1310": provider.NotMobile,
	"1331": provider.NetworkError,
	"1360": provider.Expired,
	"1420": provider.BadSender,
	"1430": provider.UnknownNumber,
	"1470": provider.Blocked, // fraud rules of the account
	"1472": provider.Blocked,
	"1473": provider.Spam, // artificially inflated traffic
	"1474": provider.Blocked,
	"1475": provider.Blocked,
	"1476": provider.BadSender, // do not originate
	"1480": provider.BadSender, // entity id
	"1481": provider.BadSender, // header id
	"1482": provider.Spam,      // content filter
	"1483": provider.Blocked,   // no consent
	"1484": provider.Blocked,
	"2001": provider.Spam,
}
