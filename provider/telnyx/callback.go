package telnyx

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// event holds the used fields of a webhook.
type event struct {
	Data struct {
		Type       string  `json:"event_type"`
		OccurredAt string  `json:"occurred_at"`
		Payload    payload `json:"payload"`
	} `json:"data"`
}

// payload is the message of an event.
type payload struct {
	ID      string      `json:"id"`
	Webhook string      `json:"webhook_url"`
	Text    string      `json:"text"`
	From    party       `json:"from"`
	To      []recipient `json:"to"`
	Errors  []fault     `json:"errors"`
}

type party struct {
	Number string `json:"phone_number"`
}

type recipient struct {
	Number string `json:"phone_number"`
	Status string `json:"status"`
}

// ReadCallback reads a webhook: the state of a message, or a message of a subscriber.
func (c *Channel) ReadCallback(call *provider.Callback) (provider.CallbackContent, error) {
	once, err := verify(call, c.cfg.PublicKeys)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	var e event
	if err := json.Unmarshal(call.Body, &e); err != nil {
		return provider.CallbackContent{},
			fmt.Errorf("%w: its JSON is broken", provider.ErrMalformed)
	}
	content := provider.CallbackContent{ReplayID: once}
	p := &e.Data.Payload
	switch e.Data.Type {
	case "message.sent", "message.finalized":
		if err := p.check(); err != nil {
			return provider.CallbackContent{}, err
		}
		content.Receipts = []provider.Receipt{receipt(call, p)}
	case "message.received":
		if err := p.check(); err != nil {
			return provider.CallbackContent{}, err
		}
		content.Inbound = []provider.Inbound{{
			Reference: p.ID, From: p.From.Number, To: p.To[0].Number, Text: p.Text, At: call.At,
			SentAt: web.Time(e.Data.OccurredAt),
		}}
	}
	return content, nil
}

// check requires the fields of an event about a message.
func (p *payload) check() error {
	if p.ID == "" || len(p.ID) > provider.MaxReference || len(p.To) == 0 {
		return fmt.Errorf("%w: it names no message", provider.ErrMalformed)
	}
	return nil
}

// receipt takes the key from the payload, which is signed, not from the URL, which is not.
func receipt(call *provider.Callback, p *payload) provider.Receipt {
	status := p.To[0].Status
	r := provider.Receipt{
		Reference: p.ID, Key: web.CallbackKey(p.Webhook), State: states[status],
		Code: web.SafeCode(status), At: call.At,
	}
	if len(p.Errors) == 0 {
		if r.State == provider.Undelivered {
			r.Cause = causeOf(status, "")
		}
		return r
	}
	code := p.Errors[0].code()
	if r.State == provider.Undelivered {
		r.Cause = causeOf(status, code)
	}
	r.Code += "/" + web.SafeCode(code)
	return r
}

// causeOf prefers the code, which is more specific than the status.
func causeOf(status, code string) provider.Cause {
	if cause := causes[code]; cause != provider.Unspecified {
		return cause
	}
	switch status {
	case "expired":
		return provider.Expired
	case "cancelled":
		return provider.Deleted
	}
	return provider.Unspecified
}

// The headers of a webhook, under their canonical names.
const (
	signatureHeader = "Telnyx-Signature-Ed25519"
	timestampHeader = "Telnyx-Timestamp"
)

// verify checks the Ed25519 signature over "<timestamp>|<body>", and then the timestamp, in seconds
// since 1970. once is the signature in its canonical encoding.
func verify(c *provider.Callback, keys []ed25519.PublicKey) (once string, err error) {
	stamp := c.Get(timestampHeader)
	signature, err := base64.StdEncoding.DecodeString(c.Get(signatureHeader))
	if err != nil || len(signature) != ed25519.SignatureSize {
		return "", provider.ErrForged
	}
	signed := append([]byte(stamp+"|"), c.Body...)
	genuine := false
	for _, key := range keys {
		genuine = ed25519.Verify(key, signed, signature) || genuine
	}
	if !genuine {
		return "", provider.ErrForged
	}
	return base64.StdEncoding.EncodeToString(signature), web.CheckStamp(stamp, c.At, web.Tolerance)
}
