package sinch

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// api writes submissions and reads answers.
type api struct{ cfg Config }

// batch is the body of a submission: one text for a list of recipients, which here has one.
type batch struct {
	From            string               `json:"from,omitempty"`
	To              []string             `json:"to"`
	Body            string               `json:"body"`
	Type            string               `json:"type"`
	Parameters      map[string]parameter `json:"parameters,omitempty"`
	DeliveryReport  string               `json:"delivery_report"`
	CallbackURL     string               `json:"callback_url,omitempty"`
	ClientReference string               `json:"client_reference,omitempty"`
	ExpireAt        string               `json:"expire_at,omitempty"`
}

// parameter is the value of ${name} in a text; Default applies to all recipients.
type parameter struct {
	Default string `json:"default"`
}

// timeFormat is ISO 8601 as the API writes it.
const timeFormat = "2006-01-02T15:04:05.000Z"

// Compose writes a submission as a batch.
func (a api) Compose(
	s *provider.Submission,
) (*web.Request, error) {
	return a.compose(s, time.Now())
}

func (a api) compose(s *provider.Submission, now time.Time) (*web.Request, error) {
	b := batch{
		From: s.From, To: []string{s.To}, Type: "mt_text", DeliveryReport: "none",
		ClientReference: s.Key, ExpireAt: expiry(s.Validity, now),
	}
	b.Body, b.Parameters = literal(s.Text)
	if b.From == "" {
		b.From = a.cfg.From
	}
	if a.cfg.acceptsCallbacks() {
		b.DeliveryReport, b.CallbackURL = "per_recipient", a.cfg.Callback
	}
	body, err := json.Marshal(&b)
	if err != nil {
		return nil, errors.New("the message cannot be written as JSON")
	}
	return &web.Request{
		Method: http.MethodPost, URL: a.cfg.path(), Body: body,
		Header: http.Header{
			"Authorization": {"Bearer " + a.cfg.Token}, "Content-Type": {"application/json"},
		},
	}, nil
}

func (c *Config) path() string { return "/xms/v1/" + c.Plan + "/batches" }

// expiry is when Sinch stops trying, at most almost three days from now; empty leaves it to Sinch.
func expiry(validity, now time.Time) string {
	if validity.IsZero() {
		return ""
	}
	if latest := now.Add(longestValidity); validity.After(latest) {
		validity = latest
	}
	return validity.UTC().Format(timeFormat)
}

// literal keeps Sinch from reading "${name}" in a text as a parameter, which it would replace or
// reject with code 405. Each dollar sign before a brace becomes a parameter whose value is a dollar
// sign.
func literal(text string) (string, map[string]parameter) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	return strings.ReplaceAll(text, "${", "${dollar}{"),
		map[string]parameter{"dollar": {Default: "$"}}
}
