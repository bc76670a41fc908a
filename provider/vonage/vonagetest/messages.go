package vonagetest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/sms"
	"dispatcher/provider/web/webtest"
)

// messagesShape is the Messages API v1.
type messagesShape struct{ cfg Config }

var _ webtest.Protocol = messagesShape{}

// message is a submission as the API takes it.
type message struct {
	MessageType string `json:"message_type"`
	Channel     string `json:"channel"`
	To          string `json:"to"`
	From        string `json:"from"`
	Text        string `json:"text"`
	ClientRef   string `json:"client_ref"`
	TTL         *int   `json:"ttl"`
	SMS         struct {
		EncodingType string `json:"encoding_type"`
	} `json:"sms"`
	WebhookURL     string `json:"webhook_url"`
	WebhookVersion string `json:"webhook_version"`
}

// Read reads a submission.
func (ms messagesShape) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/messages":
		return webtest.Submit{}, fmt.Errorf("%s %s is not an address of the API", r.Method, r.URL.Path)
	case r.Header.Get("Content-Type") != "application/json":
		return webtest.Submit{}, errors.New("not sent as JSON")
	}
	if err := ms.cfg.authorized(r, time.Now()); err != nil {
		return webtest.Submit{}, err
	}
	var m message
	if err := webtest.DecodeStrict(body, &m); err != nil {
		return webtest.Submit{}, errors.New("invalid-json")
	}
	if err := m.check(); err != nil {
		return webtest.Submit{}, err
	}
	return webtest.Submit{
		To: "+" + m.To, From: m.From, Text: m.Text, Key: m.ClientRef, Callback: m.WebhookURL,
		Parts: sms.Count(m.Text, sms.Reference8).Segments,
	}, nil
}

// maxText and maxRef are how many characters a text and a reference have at most.
const (
	maxText = 3200
	maxRef  = 100
)

func (m *message) check() error {
	switch {
	case m.Channel != "sms":
		return errors.New("1400: channel")
	case m.MessageType != "text":
		return errors.New("1440: message_type")
	case !number.MatchString(m.To):
		return errors.New("1430: to")
	case m.From == "" || m.From[0] == '+':
		return errors.New("1420: from")
	case m.Text == "" || len([]rune(m.Text)) > maxText:
		return errors.New("1020: text")
	case len(m.ClientRef) > maxRef:
		return errors.New("1450: client_ref")
	case m.TTL != nil && (*m.TTL < 20 || *m.TTL > 604800):
		return errors.New("1130: ttl")
	case m.SMS.EncodingType == "text" && sms.Count(m.Text, sms.Reference8).Alphabet != sms.GSM7:
		return errors.New("1410: encoding_type text would lose characters")
	case m.SMS.EncodingType != "text" && m.SMS.EncodingType != "unicode" &&
		m.SMS.EncodingType != "auto":
		return errors.New("1410: encoding_type")
	case m.WebhookURL != "" && (!isAddress(m.WebhookURL) || m.WebhookVersion != "v1"):
		return errors.New("1410: webhook")
	}
	return nil
}

// Write answers a submission.
func (messagesShape) Write(w http.ResponseWriter, s *webtest.Submit, v providertest.Answer) {
	switch v.Reply {
	case providertest.Reject:
		writeProblem(w, http.StatusUnprocessableEntity, "1430",
			"The `to` parameter "+bare(s.To)+" is invalid.")
	case providertest.Refuse:
		writeProblem(w, http.StatusPaymentRequired, "1070", "Low balance")
	case providertest.Throttle:
		webtest.SetRetryAfter(w, "Retry-After", v)
		writeProblem(w, http.StatusTooManyRequests, "1000", "Please wait, then retry your request")
	case providertest.Accept, providertest.Lose, providertest.Cut:
		webtest.WriteJSON(w, http.StatusAccepted, map[string]string{"message_uuid": s.Reference})
	}
}

func writeProblem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	webtest.WriteJSON(w, status, map[string]string{
		"type":  "https://developer.vonage.com/api-errors/messages#" + code,
		"title": "Problem " + code, "detail": detail,
		"instance": "bf0ca0bf927b3b52e3cb03217e1a1ddf",
	})
}

// Receipt is the status of a message. Its code is the number of an error, such as "1260".
func (ms messagesShape) Receipt(s *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if s.Callback == "" {
		return nil, nil //nolint:nilnil // No status was asked for.
	}
	event := map[string]any{
		"channel": "sms", "message_uuid": s.Reference, "to": bare(s.To), "from": s.From,
		"client_ref": s.Key,
		"timestamp":  time.Now().UTC().Format(time.RFC3339), "status": statusOf(r.State),
		"usage":       map[string]string{"currency": "EUR", "price": "0.0333"},
		"destination": map[string]string{"network_code": "23415"},
		"sms":         map[string]string{"count_total": strconv.Itoa(s.Parts)},
	}
	code := r.Code
	if code == "" && r.State == provider.Undelivered {
		code = "1260"
	}
	if code != "" {
		event["error"] = map[string]string{
			"type": "https://developer.vonage.com/api-errors/messages#" + code, "title": code,
			"detail":   "Destination unreachable " + bare(s.To),
			"instance": "bf0ca0bf927b3b52e3cb03217e1a1ddf",
		}
	}
	return ms.cfg.tokenCall(s.Callback, event)
}

func statusOf(state provider.ReceiptState) string {
	switch state {
	case provider.Delivered:
		return "delivered"
	case provider.Undelivered:
		return "undeliverable"
	case provider.Pending:
	}
	return "submitted"
}

// Inbound is the callback with a message of a subscriber.
func (ms messagesShape) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	return ms.cfg.tokenCall(callback, map[string]any{
		"channel": "sms", "message_uuid": in.Reference, "to": bare(in.To), "from": bare(in.From),
		"message_type": "text",
		"timestamp":    time.Now().UTC().Format(time.RFC3339), "text": in.Text,
		"sms":   map[string]string{"num_messages": "1", "keyword": "HELLO"},
		"usage": map[string]string{"currency": "EUR", "price": "0"},
	})
}
