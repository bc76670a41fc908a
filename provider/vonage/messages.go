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
func (a messages) Compose(s *provider.Submission) (*web.Request, error) {
	return a.compose(s, time.Now())
}

func (a messages) compose(s *provider.Submission, now time.Time) (*web.Request, error) {
	o, err := a.cfg.prepare(s)
	if err != nil {
		return nil, err
	}
	m := message{
		MessageType: "text", Channel: "sms", To: o.to, From: o.from, Text: s.Text, ClientRef: s.Key,
		TTL: int64(lifetime(s.Ends(), now) / time.Second), SMS: messageSMS{o.encoding},
	}
	if a.cfg.listens() {
		m.WebhookURL, m.WebhookVersion = a.cfg.Callback, "v1"
	}
	body, err := json.Marshal(&m)
	if err != nil {
		return nil, errors.New("the message cannot be written as JSON")
	}
	authorization, err := a.login.header(now)
	if err != nil {
		return nil, err
	}
	return &web.Request{
		Method: http.MethodPost, URL: "/v1/messages", Body: body,
		Header: http.Header{"Authorization": {authorization}, "Content-Type": {"application/json"}, "Accept": {"application/json"}},
	}, nil
}

// messagesAnswer is the id of what was taken, or a problem (RFC 7807). The detail of a problem may repeat a
// number and is not read.
type messagesAnswer struct {
	UUID string `json:"message_uuid"`
	Type string `json:"type"`
}

// Classify reads the answer to a submission.
func (a messages) Classify(got *web.Answer) provider.Result {
	var said messagesAnswer
	readable := json.Unmarshal(got.Body, &said) == nil
	code := problemCode(said.Type)
	switch got.Status {
	case http.StatusAccepted:
		if !readable || said.UUID == "" {
			return got.Unreadable("")
		}
		return provider.Result{Outcome: provider.Accepted, Reference: said.UUID}
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

// problemCode is the end of the address that names a problem: "1120" of ".../api-errors/messages#1120".
func problemCode(address string) string {
	_, code, _ := strings.Cut(address, "#")
	return code
}

// unprocessable reads a 422 or a 400: the code decides. One that is not listed, or that cannot be read, says nothing certain: some
// are what a carrier said, which may have taken the message.
func unprocessable(got *web.Answer, code string) provider.Result {
	if v, ok := messagesMeanings[code]; ok {
		return got.Result(v, code)
	}
	return got.Unreadable(code)
}
