package infobiptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

// Receipt is a delivery report on a message. Its code is "<group id>/<status id>/<status
// name>/<error id>", such as "2/9/UNDELIVERABLE_NOT_DELIVERED/1".
func (p protocol) Receipt(s *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if s.Callback == "" {
		return nil, nil //nolint:nilnil // No report was asked for.
	}
	state, errorID, err := stateOf(r)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000+0000")
	call, err := callOf(s.Callback, map[string]any{
		"bulkId": "2034072219640523072", "messageId": idOf(s), "to": bare(s.To), "sender": s.From,
		"sentAt": now, "doneAt": now,
		"messageCount": s.Parts,
		"price":        map[string]any{"pricePerMessage": 0.01, "currency": "EUR"},
		"callbackData": s.Key,
		"status":       state, "mccMnc": "23415",
		"error": map[string]any{
			"groupId": 0, "groupName": "OK", "id": errorID, "name": "ERROR", "permanent": false,
		},
	})
	if err == nil && s.Callback == p.cfg.Subscription {
		p.cfg.authenticate(call)
	}
	return call, err
}

func stateOf(r webtest.Receipt) (s status, errorID int, err error) {
	if r.Code != "" {
		text := strings.ReplaceAll(r.Code, "/", " ")
		if _, err = fmt.Sscan(text, &s.GroupID, &s.ID, &s.Name, &errorID); err != nil {
			return status{}, 0, fmt.Errorf("code of a receipt: %w", err)
		}
		return s, errorID, nil
	}
	switch r.State {
	case provider.Delivered:
		return delivered, 0, nil
	case provider.Undelivered:
		return failed, 27, nil
	case provider.Pending:
	}
	return pending, 0, nil
}

// Inbound is the callback with a message of a subscriber.
func (p protocol) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	call, err := callOf(callback, map[string]any{
		"messageId": in.Reference, "from": bare(in.From), "to": bare(in.To), "text": in.Text,
		"cleanText": in.Text, "keyword": "",
		"receivedAt": time.Now().UTC().Format("2006-01-02T15:04:05.000+0000"), "smsCount": 1,
		"price": map[string]any{"pricePerMessage": 0, "currency": "EUR"},
	})
	if err == nil {
		p.cfg.authenticate(call)
	}
	return call, err
}

// callOf makes a callback with one result.
func callOf(callback string, result map[string]any) (*http.Request, error) {
	body, err := json.Marshal(
		map[string]any{"results": []any{result}, "messageCount": 1, "pendingMessageCount": 0})
	if err != nil {
		return nil, err
	}
	return webtest.Post(callback, "application/json", body)
}

// authenticate adds the credentials that Infobip's customers configure with an address. An address
// in a message is called without them.
func (c *Config) authenticate(r *http.Request) {
	if c.User != "" {
		r.SetBasicAuth(c.User, c.Password)
	}
	if c.Header != "" {
		r.Header.Set(c.Header, c.Secret)
	}
}

func bare(number string) string { return strings.TrimPrefix(number, "+") }
