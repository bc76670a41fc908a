package birdtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// messages is the SMS messages endpoint of the REST API.
type messages struct{ cfg Config }

type submit struct {
	Originator string   `json:"originator"`
	Recipients []string `json:"recipients"`
	Body       string   `json:"body"`
	Datacoding string   `json:"datacoding"`
	Reference  string   `json:"reference"`
	ReportURL  string   `json:"reportUrl"`
	Validity   int      `json:"validity"`
	Type       string   `json:"type"`
}

// Read reads a POST /messages.
func (m messages) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	if err := m.cfg.authorized(r); err != nil {
		return webtest.Submit{}, err
	}
	if r.Method != http.MethodPost || r.URL.Path != "/messages" {
		return webtest.Submit{}, fmt.Errorf("%s %s is not part of this API", r.Method, r.URL.Path)
	}
	var s submit
	if err := webtest.DecodeStrict(body, &s); err != nil {
		return webtest.Submit{}, err
	}
	return webtest.Submit{
		To: "+" + strings.Join(s.Recipients, ","), From: s.Originator, Text: s.Body,
		Key: s.Reference, Callback: s.ReportURL,
	}, s.check()
}

func (s *submit) check() error {
	digits := strings.Trim(s.Originator, "0123456789") == ""
	switch {
	case len(s.Recipients) != 1 || len(s.Recipients[0]) < 7 ||
		strings.Trim(s.Recipients[0], "0123456789") != "":
		return errors.New("recipients: not one number")
	case s.Originator == "", digits && len(s.Originator) > 17, !digits && len(s.Originator) > 11:
		return errors.New("originator: neither a number nor a name of 11 characters")
	case s.Body == "":
		return errors.New("body: is missing")
	case s.Datacoding != "plain" && s.Datacoding != "unicode":
		return errors.New("datacoding: plain or unicode")
	case s.ReportURL != "" && s.Reference == "":
		return errors.New("reference: is required for status reports")
	case s.Validity < 0:
		return errors.New("validity: is negative")
	}
	return nil
}

// Write answers as the endpoint does.
func (m messages) Write(w http.ResponseWriter, s *webtest.Submit, v providertest.Answer) {
	w.Header().Set("Content-Type", "application/json")
	switch v.Reply {
	case providertest.Reject:
		refuse(w, replyStatus(v.Reply), 10, "recipients is invalid", "recipients")
	case providertest.Refuse:
		refuse(w, replyStatus(v.Reply), 2, "Request not allowed (incorrect access_key)",
			"access_key")
	case providertest.Throttle:
		webtest.SetRetryAfter(w, "Retry-After", v)
		w.WriteHeader(http.StatusTooManyRequests)
	case providertest.Accept, providertest.Lose, providertest.Cut:
		m.accept(w, s)
	}
}

func (m messages) accept(w http.ResponseWriter, s *webtest.Submit) {
	number, _ := strconv.ParseInt(strings.TrimPrefix(s.To, "+"), 10, 64)
	item := map[string]any{
		"recipient": number, "status": "sent",
		"statusDatetime": stamp().Format("2006-01-02T15:04:05-07:00"), "messagePartCount": s.Parts,
	}
	webtest.WriteJSON(w, http.StatusCreated, map[string]any{
		"id": s.Reference, "href": "https://rest.messagebird.com/messages/" + s.Reference,
		"direction": "mt", "type": "sms",
		"originator": s.From, "body": s.Text, "reference": s.Key, "validity": nil, "gateway": nil,
		"typeDetails": map[string]any{},
		"datacoding":  "plain", "mclass": 1, "scheduledDatetime": nil,
		"createdDatetime": stamp().Format("2006-01-02T15:04:05-07:00"),
		"recipients": map[string]any{
			"totalCount": 1, "totalSentCount": 1, "totalDeliveredCount": 0,
			"totalDeliveryFailedCount": 0, "items": []any{item},
		},
	})
}

func refuse(w http.ResponseWriter, status, code int, description, parameter string) {
	webtest.WriteJSON(w, status, map[string]any{
		"errors": []any{
			map[string]any{"code": code, "description": description, "parameter": parameter},
		},
	})
}

// Receipt is a status report: a GET with everything in the query.
func (m messages) Receipt(s *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if s.Callback == "" {
		return nil, nil //nolint:nilnil // no report was requested
	}
	word, reason, code := status(r)
	fields := url.Values{
		"id": {s.Reference}, "reference": {s.Key}, "recipient": {strings.TrimPrefix(s.To, "+")},
		"status":       {word},
		"statusReason": {reason}, "statusDatetime": {stamp().Format("2006-01-02T15:04:05-07:00")},
	}
	if code != "" {
		fields.Set("statusErrorCode", code)
	}
	return m.cfg.signed(http.MethodGet, s.Callback+"?"+fields.Encode(), nil, "")
}

// Inbound is a forwarded message: a form.
func (m messages) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	fields := url.Values{
		"id": {in.Reference}, "originator": {strings.TrimPrefix(in.From, "+")},
		"recipient": {strings.TrimPrefix(in.To, "+")},
		"body":      {in.Text}, "createdDatetime": {stamp().Format("2006-01-02T15:04:05-07:00")},
	}
	return m.cfg.signed(http.MethodPost, callback, []byte(fields.Encode()),
		"application/x-www-form-urlencoded")
}

// signed is a request signed as MessageBird.
func (c *Config) signed(
	method, address string, body []byte, contentType string,
) (*http.Request, error) {
	var content io.Reader = http.NoBody
	if body != nil {
		content = bytes.NewReader(body)
	}
	r, err := http.NewRequest(method, address, content) //nolint:noctx // The carrier sets its context.
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	switch {
	case c.Channel != "":
		c.signURL(r, address, body)
	case c.HMAC:
		c.signQuery(r, body)
	default:
		r.Header.Set("MessageBird-Signature-JWT", c.token(address, body))
	}
	return r, nil
}

// Sign is a GET of an address with its query, signed as the account signs.
func Sign(cfg Config, address string) (*http.Request, error) {
	return cfg.signed(http.MethodGet, address, nil, "")
}

// SignBody is a POST of a JSON body, signed as the account signs.
func SignBody(cfg Config, address string, body []byte) (*http.Request, error) {
	return cfg.signed(http.MethodPost, address, body, "application/json")
}
