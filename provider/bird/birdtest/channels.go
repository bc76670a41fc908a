package birdtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// channels is the Channels API.
type channels struct{ cfg Config }

type party struct {
	Key   string `json:"identifierKey,omitempty"`
	Value string `json:"identifierValue"`
}

type outgoing struct {
	Sender *struct {
		Connector party `json:"connector"`
	} `json:"sender"`
	Receiver struct {
		Contacts []party `json:"contacts"`
	} `json:"receiver"`
	Body struct {
		Type string `json:"type"`
		Text struct {
			Text string `json:"text"`
		} `json:"text"`
	} `json:"body"`
	Reference string `json:"reference"`
}

// Read reads a POST .../messages.
func (c channels) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	if err := c.cfg.authorized(r); err != nil {
		return webtest.Submit{}, err
	}
	if want := "/workspaces/" + c.cfg.Workspace + "/channels/" + c.cfg.Channel +
		"/messages"; r.Method != http.MethodPost || r.URL.Path != want {
		return webtest.Submit{}, fmt.Errorf("%s %s is not part of this API", r.Method, r.URL.Path)
	}
	var out outgoing
	if err := webtest.DecodeStrict(body, &out); err != nil {
		return webtest.Submit{}, err
	}
	contacts := out.Receiver.Contacts
	if len(contacts) != 1 || contacts[0].Key != "phonenumber" || out.Body.Type != "text" ||
		out.Body.Text.Text == "" {
		return webtest.Submit{}, errors.New("not a text for one phone number")
	}
	s := webtest.Submit{
		To: contacts[0].Value, Text: out.Body.Text.Text, Key: out.Reference,
		Callback: c.cfg.Callback,
	}
	if out.Sender != nil {
		s.From = out.Sender.Connector.Value
	}
	return s, nil
}

// Write answers as the API does.
func (c channels) Write(w http.ResponseWriter, s *webtest.Submit, v providertest.Answer) {
	w.Header().Set("Content-Type", "application/json")
	code := map[providertest.Reply]string{
		providertest.Reject: "InvalidPayload", providertest.Refuse: "Unauthorized",
		providertest.Throttle: "TooManyRequests",
	}[v.Reply]
	if code == "" {
		webtest.WriteJSON(w, http.StatusAccepted, c.message(s, "accepted", "", ""))
		return
	}
	webtest.SetRetryAfter(w, "Retry-After", v)
	answer := map[string]any{"code": code, "message": "not taken"}
	if v.Reply == providertest.Reject {
		answer["details"] = map[string]any{
			"receiver.contacts[0].identifierValue": []string{s.To + " is not a phone number"},
		}
	}
	webtest.WriteJSON(w, replyStatus(v.Reply), answer)
}

func (c channels) message(s *webtest.Submit, word, reason, code string) map[string]any {
	m := map[string]any{
		"id": s.Reference, "channelId": c.cfg.Channel, "direction": "outgoing", "status": word,
		"reason": reason, "reference": s.Key,
		"sender":       map[string]any{"connector": party{Value: s.From}},
		"receiver":     map[string]any{"contacts": []party{{Key: "phonenumber", Value: s.To}}},
		"body":         map[string]any{"type": "text", "text": map[string]any{"text": s.Text}},
		"lastStatusAt": stamp(), "createdAt": stamp(), "updatedAt": stamp(),
	}
	if code != "" {
		m["failure"] = map[string]any{
			"code": 15001, "source": map[string]any{"name": "sms-messagebird", "code": code},
		}
	}
	return m
}

// Receipt is an event with the message as it is now.
func (c channels) Receipt(s *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if s.Callback == "" {
		return nil, nil //nolint:nilnil // This account has no webhook.
	}
	word, reason, code := status(r)
	if r.State != provider.Undelivered {
		code = ""
	}
	return c.post(s.Callback, "sms.outbound", c.message(s, word, reason, code))
}

// Inbound is an event with the subscriber's message.
func (c channels) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	return c.post(callback, "sms.inbound", map[string]any{
		"id": in.Reference, "channelId": c.cfg.Channel, "direction": "incoming",
		"status":   "delivered",
		"sender":   map[string]any{"contact": party{Key: "phonenumber", Value: in.From}},
		"receiver": map[string]any{"connector": party{Value: in.To}},
		"body":     map[string]any{"type": "text", "text": map[string]any{"text": in.Text}},
	})
}

func (c channels) post(callback, name string, payload any) (*http.Request, error) {
	body, err := json.Marshal(
		map[string]any{"service": "channels", "event": name, "payload": payload})
	if err != nil {
		return nil, err
	}
	return c.cfg.signed(http.MethodPost, callback, body, "application/json")
}
