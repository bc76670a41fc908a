// Package telnyxtest is the server side of Telnyx's Messaging API for scripted carriers, with an
// independent implementation of its webhook signatures.
package telnyxtest

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	"dispatcher/provider/providertest"
	"dispatcher/provider/sms"
	"dispatcher/provider/web/webtest"
)

// Config is what the account of the scripted carrier has.
type Config struct {
	APIKey string
	// Key signs webhooks. Its public half is the channel's setting.
	Key ed25519.PrivateKey
}

// New returns the protocol. References have Telnyx's format if the carrier's Config has Reference.
func New(cfg Config) webtest.Protocol { return &protocol{cfg} }

// Reference is the id of the n-th message, for webtest.Config.
func Reference(n uint64) string { return fmt.Sprintf("40385f64-5717-4562-b3fc-%012x", n) }

type protocol struct{ cfg Config }

// request is what POST /v2/messages takes of an SMS.
type request struct {
	From            string `json:"from"`
	To              string `json:"to"`
	Text            string `json:"text"`
	Type            string `json:"type"`
	Encoding        string `json:"encoding"`
	AutoDetect      bool   `json:"auto_detect"`
	Profile         string `json:"messaging_profile_id"`
	Webhook         string `json:"webhook_url"`
	ProfileWebhooks bool   `json:"use_profile_webhooks"`
}

var number = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

// Read reads a request that sends a message, and refuses what Telnyx would refuse.
func (p *protocol) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/messages" && r.URL.Path != "/v2/messages":
		return webtest.Submit{}, errors.New("10005: another resource")
	case r.Header.Get("Authorization") != "Bearer "+p.cfg.APIKey:
		return webtest.Submit{}, errors.New("10009: wrong credentials")
	case r.Header.Get("Content-Type") != "application/json":
		return webtest.Submit{}, errors.New("10014: the content type is not JSON")
	}
	var m request
	if err := webtest.DecodeStrict(body, &m); err != nil {
		return webtest.Submit{}, fmt.Errorf("10023: %w", err)
	}
	if err := m.check(); err != nil {
		return webtest.Submit{}, err
	}
	return webtest.Submit{
		To: m.To, From: m.From, Text: m.Text, Key: webtest.KeyIn(m.Webhook), Callback: m.Webhook,
		Parts: m.parts(),
	}, nil
}

// parts is how many parts Telnyx makes of the text, and bills.
func (r *request) parts() int {
	if r.Encoding == "ucs2" {
		return sms.CountUCS2(r.Text, sms.Reference8).Segments
	}
	return sms.Count(r.Text, sms.Reference8).Segments
}

// gsm7 matches a text whose characters are all in Telnyx's own GSM-7.
var gsm7 = regexp.MustCompile(
	"^[0-9A-Za-z\\n\\r !\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_{}|~£¥èéùìòØøÅåÆæßÉ¡ÄÖÑÜ¿äöñüà]*$")

func (r *request) check() error {
	switch {
	case !number.MatchString(r.To):
		return errors.New("40310: invalid 'to' address")
	case r.From == "" && r.Profile == "":
		return errors.New("40305: invalid 'from' address")
	case r.From != "" && !number.MatchString(r.From) && r.Profile == "":
		return errors.New("40305: an alphanumeric sender needs a profile")
	case r.Text == "":
		return errors.New("40316: no content")
	case r.Type != "SMS":
		return errors.New("10015: another type than SMS")
	case r.Encoding != "gsm7" && r.Encoding != "ucs2",
		r.Encoding == "gsm7" && !gsm7.MatchString(r.Text):
		return errors.New("the text does not fit its encoding")
	}
	if r.Webhook != "" {
		if u, err := url.Parse(r.Webhook); err != nil || u.Host == "" {
			return errors.New("10003: invalid URL")
		}
	}
	return nil
}

// Write answers in the formats of a message and of Telnyx's errors.
func (p *protocol) Write(w http.ResponseWriter, submit *webtest.Submit, v providertest.Answer) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	switch v.Reply {
	case providertest.Reject:
		writeFault(w, http.StatusBadRequest, "40310", "Invalid 'to' address",
			"The 'to' address "+submit.To+" is invalid.", "/to")
	case providertest.Refuse:
		writeFault(w, http.StatusForbidden, "20100", "Insufficient Funds",
			"You have insufficient funds to perform this action.", "")
	case providertest.Throttle:
		if v.RetryAfter > 0 {
			w.Header().Set("X-Ratelimit-Limit", "50")
			w.Header().Set("X-Ratelimit-Remaining", "0")
		}
		webtest.SetRetryAfter(w, "X-Ratelimit-Reset", v)
		writeFault(w, http.StatusTooManyRequests, "10011", "Too many requests",
			"You have exceeded the maximum number of allowed requests.", "")
	default:
		webtest.WriteJSON(w, http.StatusOK, map[string]any{"data": p.message(submit, "queued")})
	}
}

// message is a message in answers and webhooks.
func (p *protocol) message(submit *webtest.Submit, status string) map[string]any {
	return map[string]any{
		"record_type": "message", "direction": "outbound", "id": submit.Reference, "type": "SMS",
		"organization_id":      "b448f9cc-a842-4784-98e9-03c1a5872950",
		"messaging_profile_id": "4000eba1-a0c0-4563-9925-b25e842a7cb6",
		"from": map[string]any{
			"phone_number": submit.From, "carrier": "TELNYX LLC", "line_type": "VoIP",
		},
		"to": []any{
			map[string]any{
				"phone_number": submit.To, "status": status, "carrier": "", "line_type": "Wireless",
			},
		},
		"cc": []any{}, "text": submit.Text, "media": []any{}, "webhook_url": submit.Callback,
		"webhook_failover_url": nil,
		"parts":                submit.Parts, "tags": []any{}, "cost": nil,
		"received_at": submit.At.UTC().Format("2006-01-02T15:04:05.000+00:00"),
		"sent_at":     nil, "completed_at": nil, "valid_until": nil, "errors": []any{},
	}
}

func writeFault(w http.ResponseWriter, status int, code, title, detail, pointer string) {
	fault := map[string]any{
		"code": code, "title": title, "detail": detail,
		"meta": map[string]any{"url": "https://developers.telnyx.com/docs/overview/errors/" + code},
	}
	if pointer != "" {
		fault["source"] = map[string]any{"pointer": pointer}
	}
	webtest.WriteJSON(w, status, map[string]any{"errors": []any{fault}})
}
