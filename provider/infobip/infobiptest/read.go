package infobiptest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	"dispatcher/provider/sms"
	"dispatcher/provider/web/webtest"
)

// request is a message as the API takes it.
type request struct {
	Messages []struct {
		Sender       string `json:"sender"`
		Destinations []struct {
			To        string `json:"to"`
			MessageID string `json:"messageId"`
		} `json:"destinations"`
		Content struct {
			Text            string `json:"text"`
			Transliteration string `json:"transliteration"`
		} `json:"content"`
		Options struct {
			ValidityPeriod *struct {
				Amount   int    `json:"amount"`
				TimeUnit string `json:"timeUnit"`
			} `json:"validityPeriod"`
		} `json:"options"`
		Webhooks struct {
			Delivery struct {
				URL    string `json:"url"`
				Notify bool   `json:"notify"`
			} `json:"delivery"`
			ContentType  string `json:"contentType"`
			CallbackData string `json:"callbackData"`
		} `json:"webhooks"`
	} `json:"messages"`
}

// number is a recipient: international, without a plus.
var number = regexp.MustCompile(`^[0-9]{7,15}$`)

// maxValidity is 48 hours in seconds.
const maxValidity = 48 * 60 * 60

// Read reads a message.
func (p protocol) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/sms/3/messages":
		return webtest.Submit{}, fmt.Errorf("%s %s is not an address of the API", r.Method, r.URL.Path)
	case r.Header.Get("Authorization") != "App "+p.cfg.Key:
		return webtest.Submit{}, errors.New("wrong API key")
	case r.Header.Get("Content-Type") != "application/json":
		return webtest.Submit{}, errors.New("not sent as JSON")
	}
	var in request
	if err := webtest.DecodeStrict(body, &in); err != nil {
		return webtest.Submit{}, errors.New("unreadable JSON")
	}
	if err := in.check(); err != nil {
		return webtest.Submit{}, err
	}
	m := in.Messages[0]
	s := webtest.Submit{
		To: "+" + m.Destinations[0].To, From: m.Sender, Text: m.Content.Text,
		Key:   m.Destinations[0].MessageID,
		Parts: sms.Count(m.Content.Text, sms.Reference8).Segments,
	}
	if m.Webhooks.Delivery.Notify {
		s.Callback = p.cfg.Subscription
		if m.Webhooks.Delivery.URL != "" {
			s.Callback = m.Webhooks.Delivery.URL
		}
	}
	return s, nil
}

func (r *request) check() error {
	if len(r.Messages) != 1 || len(r.Messages[0].Destinations) != 1 {
		return errors.New("not one message to one destination")
	}
	m := r.Messages[0]
	switch to := m.Destinations[0]; {
	case !number.MatchString(to.To):
		return errors.New("messages[0].destinations[0].to")
	case len(to.MessageID) > 200:
		return errors.New("messages[0].destinations[0].messageId")
	case m.Content.Text == "" || m.Content.Transliteration != "NONE":
		return errors.New("messages[0].content")
	case len(m.Webhooks.CallbackData) > 4000 ||
		m.Webhooks.CallbackData != "" && m.Webhooks.CallbackData != to.MessageID:
		return errors.New("messages[0].webhooks.callbackData")
	case m.Webhooks.Delivery.Notify && m.Webhooks.ContentType != "application/json":
		return errors.New("messages[0].webhooks.contentType")
	}
	if v := m.Options.ValidityPeriod; v != nil &&
		(v.TimeUnit != "SECONDS" || v.Amount < 1 || v.Amount > maxValidity) {
		return errors.New("messages[0].options.validityPeriod")
	}
	if u, err := url.Parse(m.Webhooks.Delivery.URL); err != nil ||
		m.Webhooks.Delivery.URL != "" && !u.IsAbs() {
		return errors.New("messages[0].webhooks.delivery.url")
	}
	return nil
}
