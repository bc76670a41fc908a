package telnyxtest

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

// Receipt is message.sent or message.finalized.
func (p *protocol) Receipt(submit *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if submit.Callback == "" {
		return nil, nil //nolint:nilnil // It wants none.
	}
	kind, status := "message.finalized", "delivered"
	switch r.State {
	case provider.Pending:
		kind, status = "message.sent", "sent"
	case provider.Undelivered:
		status = "delivery_failed"
	case provider.Delivered:
	}
	m := p.message(submit, status)
	if r.State == provider.Undelivered {
		code := r.Code
		if code == "" {
			code = "40008"
		}
		m["errors"] = []any{
			map[string]any{
				"code": code, "title": "Undeliverable",
				"detail": "The recipient carrier did not accept the message.",
			},
		}
	}
	return p.post(submit.Callback, kind, m)
}

// Inbound is message.received.
func (p *protocol) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	return p.post(callback, "message.received", map[string]any{
		"record_type": "message", "direction": "inbound", "id": in.Reference, "type": "SMS",
		"text": in.Text, "parts": 1,
		"from": map[string]any{"phone_number": in.From, "carrier": "", "line_type": "Wireless"},
		"to":   []any{map[string]any{"phone_number": in.To, "status": "webhook_delivered"}},
		"cc":   []any{}, "media": []any{}, "tags": []any{}, "errors": []any{},
		"webhook_url": callback,
	})
}

func (p *protocol) post(callback, kind string, message map[string]any) (*http.Request, error) {
	body, err := json.Marshal(map[string]any{
		"data": map[string]any{
			"record_type": "event", "event_type": kind,
			"id":          "86f58db9-0fe3-4adc-9d1f-46e66e6e9323",
			"occurred_at": time.Now().UTC().Format("2006-01-02T15:04:05.000+00:00"),
			"payload":     message,
		},
		"meta": map[string]any{"attempt": 1, "delivered_to": callback},
	})
	if err != nil {
		return nil, err
	}
	r, err := webtest.Post(callback, "application/json", body)
	if err != nil {
		return nil, err
	}
	for name, value := range Sign(p.cfg.Key, time.Now(), body) {
		r.Header.Set(name, value)
	}
	return r, nil
}

// Sign makes the headers of a webhook.
func Sign(key ed25519.PrivateKey, at time.Time, body []byte) map[string]string {
	stamp := fmt.Sprint(at.Unix())
	return map[string]string{
		"telnyx-timestamp": stamp,
		"telnyx-signature-ed25519": base64.StdEncoding.EncodeToString(
			ed25519.Sign(key, []byte(stamp+"|"+string(body)))),
	}
}
