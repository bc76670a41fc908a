package sinchtest

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

// Receipt is the delivery report on the recipient of a batch. Its code is "<status>/<code>", such
// as "Failed/404".
func (p protocol) Receipt(s *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if s.Callback == "" {
		return nil, nil //nolint:nilnil // No report was asked for.
	}
	status, code, _ := strings.Cut(r.Code, "/")
	if status == "" {
		status, code = usual(r.State)
	}
	number, err := strconv.Atoi(code)
	if err != nil {
		return nil, err
	}
	return p.call(s.Callback, map[string]any{
		"type": "recipient_delivery_report_sms", "batch_id": s.Reference,
		"recipient":        strings.TrimPrefix(s.To, "+"),
		"client_reference": s.Key, "status": status, "code": number, "at": time.Now().UTC(),
		"operator_status_at": time.Now().UTC(),
	})
}

func usual(state provider.ReceiptState) (status, code string) {
	switch state {
	case provider.Delivered:
		return "Delivered", "0"
	case provider.Undelivered:
		return "Failed", "404"
	case provider.Pending:
	}
	return "Dispatched", "401"
}

// Inbound is the callback with a message of a subscriber.
func (p protocol) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	return p.call(callback, map[string]any{
		"type": "mo_text", "id": in.Reference, "from": strings.TrimPrefix(in.From, "+"),
		"to":   strings.TrimPrefix(in.To, "+"),
		"body": in.Text, "operator_id": "23415", "received_at": time.Now().UTC(),
	})
}

// call is a signed callback: base64 of HMAC-SHA256 over the body, a nonce and the time in seconds,
// joined by dots.
func (p protocol) call(callback string, event map[string]any) (*http.Request, error) {
	body, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	r, err := webtest.Post(callback, "application/json", body)
	if err != nil {
		return nil, err
	}
	if p.cfg.Secret == "" {
		return r, nil
	}
	nonce, now := rand.Text(), strconv.FormatInt(time.Now().Unix(), 10)
	sum := hmac.New(sha256.New, []byte(p.cfg.Secret))
	sum.Write(bytes.Join([][]byte{body, []byte(nonce), []byte(now)}, []byte(".")))
	r.Header.Set("x-sinch-webhook-signature", base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	r.Header.Set("x-sinch-webhook-signature-algorithm", "HmacSHA256")
	r.Header.Set("x-sinch-webhook-signature-nonce", nonce)
	r.Header.Set("x-sinch-webhook-signature-timestamp", now)
	return r, nil
}
