package infobip

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

// envelope is the body of a submission: a list of messages, which here has one.
type envelope struct {
	Messages []message `json:"messages"`
}

type message struct {
	Sender       string        `json:"sender,omitempty"`
	Destinations []destination `json:"destinations"`
	Content      content       `json:"content"`
	Options      *options      `json:"options,omitempty"`
	Webhooks     webhooks      `json:"webhooks"`
}

type destination struct {
	To        string `json:"to"`
	MessageID string `json:"messageId,omitempty"`
}

// content turns transliteration off, whatever the setting of the account: the text arrives
// unchanged, and is split and billed as package sms counts.
type content struct {
	Text            string `json:"text"`
	Transliteration string `json:"transliteration"`
}

type options struct {
	ValidityPeriod validityPeriod `json:"validityPeriod"`
}

type validityPeriod struct {
	Amount   int64  `json:"amount"`
	TimeUnit string `json:"timeUnit"`
}

// webhooks says where reports go. With notify and without a URL they go to the account's
// subscription.
type webhooks struct {
	Delivery     delivery `json:"delivery"`
	ContentType  string   `json:"contentType,omitempty"`
	CallbackData string   `json:"callbackData,omitempty"`
}

type delivery struct {
	URL    string `json:"url,omitempty"`
	Notify bool   `json:"notify"`
}

// Compose writes a submission as a message to one destination, under the submission's key as its
// id.
func (a api) Compose(
	s *provider.Submission,
) (*web.Request, error) {
	return a.compose(s, time.Now())
}

func (a api) compose(s *provider.Submission, now time.Time) (*web.Request, error) {
	m := message{
		Sender:       s.From,
		Destinations: []destination{{To: strings.TrimPrefix(s.To, "+"), MessageID: s.Key}},
		Content:      content{Text: s.Text, Transliteration: "NONE"},
		Options:      validity(s.Ends(), now),
		Webhooks:     a.cfg.webhooks(s.Key),
	}
	if m.Sender == "" {
		m.Sender = a.cfg.From
	}
	m.Sender = strings.TrimPrefix(m.Sender, "+")
	body, err := json.Marshal(&envelope{[]message{m}})
	if err != nil {
		return nil, errors.New("the message cannot be written as JSON")
	}
	header := a.cfg.header()
	header.Set("Content-Type", "application/json")
	return &web.Request{
		Method: http.MethodPost, URL: "/sms/3/messages", Body: body, Header: header,
	}, nil
}

// header is the header of every request.
func (c *Config) header() http.Header {
	return http.Header{"Authorization": {"App " + c.Key}, "Accept": {"application/json"}}
}

func (c *Config) webhooks(key string) webhooks {
	if !c.acceptsCallbacks() {
		return webhooks{}
	}
	w := webhooks{
		Delivery: delivery{Notify: true}, ContentType: "application/json", CallbackData: key,
	}
	if c.by(ByURL) && key != "" {
		w.Delivery.URL = c.proofs().Address(c.Callback, key)
	}
	return w
}

// validity is how long Infobip tries, at least a second and at most 48 hours; nil leaves it to
// Infobip.
func validity(until, now time.Time) *options {
	if until.IsZero() {
		return nil
	}
	left := min(max(until.Sub(now), time.Second), longestValidity)
	return &options{validityPeriod{int64(left / time.Second), "SECONDS"}}
}
