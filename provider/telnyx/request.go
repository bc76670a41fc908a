package telnyx

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/sms"
	"dispatcher/provider/web"
)

// outbound is the body of POST /v2/messages.
type outbound struct {
	From       string `json:"from,omitempty"`
	To         string `json:"to"`
	Text       string `json:"text"`
	Type       string `json:"type"`
	Encoding   string `json:"encoding"`
	AutoDetect bool   `json:"auto_detect"`
	Profile    string `json:"messaging_profile_id,omitempty"`
	Webhook    string `json:"webhook_url,omitempty"`
	// ProfileWebhooks would also send events to the addresses of the profile.
	ProfileWebhooks *bool `json:"use_profile_webhooks,omitempty"`
}

// api writes requests and reads answers. It is pure.
type api struct {
	cfg    Config
	header http.Header
}

func newAPI(cfg Config) *api {
	return &api{cfg: cfg, header: http.Header{
		"Authorization": {"Bearer " + cfg.APIKey}, "Content-Type": {"application/json"},
		"Accept": {"application/json"},
	}}
}

// Compose writes a submission. It names the encoding, so that the text is sent and billed as it was
// counted: "ucs2" turns smart encoding off, and with "gsm7" nothing is replaced, because Telnyx's
// GSM-7 has every character of the text.
func (a *api) Compose(s *provider.Submission) (*web.Request, error) {
	if s.Text == "" {
		return nil, web.Unsendable("there is no text")
	}
	m := outbound{
		From: s.From, To: s.To, Text: s.Text, Type: "SMS", Encoding: "gsm7", Profile: a.cfg.Profile,
	}
	if measure(s.Text).Alphabet == sms.UCS2 {
		m.Encoding = "ucs2"
	}
	if m.From == "" {
		m.From = a.cfg.From
	}
	if m.From == "" && m.Profile == "" {
		return nil, errors.New("neither the message nor the channel names a sender")
	}
	if a.cfg.receipts() {
		m.Webhook, m.ProfileWebhooks = web.WithKey(a.cfg.Callback, s.Key), new(bool)
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, errors.New("the message cannot be written as JSON")
	}
	return &web.Request{Method: http.MethodPost, URL: "/messages", Header: a.header, Body: body},
		nil
}

// foreign are the characters of GSM-7 that Telnyx's GSM-7 lacks, by
// https://developers.telnyx.com/docs/messaging/messages/message-encoding. A text with one of them
// is sent and billed in UTF-16. The versions of that page disagree about the section sign.
const foreign = "Ç€§¤ΔΦΓΛΩΠΨΣΘΞ\f"

// Segments is how many parts Telnyx bills for a text as this package sends it.
func Segments(text string) int { return measure(text).Segments }

// measure counts a text in the alphabet in which it is sent.
func measure(text string) sms.Size {
	if strings.ContainsAny(text, foreign) {
		return sms.CountUCS2(text, sms.Reference8)
	}
	return sms.Count(text, sms.Reference8)
}
