package httpapitest

import (
	"errors"
	"net/http"
	"net/url"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

type clickSend struct{ cfg Config }

type collection struct {
	Messages []struct {
		Source string `json:"source"`
		To     string `json:"to"`
		From   string `json:"from"`
		Body   string `json:"body"`
		Custom string `json:"custom_string"`
	} `json:"messages"`
}

// Read takes a POST with one message.
func (c clickSend) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	user, password, _ := r.BasicAuth()
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v3/sms/send" || r.URL.RawQuery != "":
		return webtest.Submit{}, errors.New("no POST of sms/send")
	case user != c.cfg.User || password != c.cfg.Password:
		return webtest.Submit{}, errAccount
	case r.Header.Get("Content-Type") != "application/json":
		return webtest.Submit{}, errors.New("not JSON")
	}
	var list collection
	if err := webtest.DecodeStrict(body, &list); err != nil {
		return webtest.Submit{}, err
	}
	if len(list.Messages) != 1 || list.Messages[0].Body == "" {
		return webtest.Submit{}, errors.New("not one message with a body")
	}
	m := list.Messages[0]
	return webtest.Submit{
		To: m.To, From: m.From, Text: m.Body, Key: m.Custom, Callback: c.cfg.Callback,
	}, nil
}

// Write always answers 200; the status of the message is in the body.
func (c clickSend) Write(w http.ResponseWriter, s *webtest.Submit, v providertest.Answer) {
	status := "SUCCESS"
	switch v.Reply {
	case providertest.Reject:
		status = "INVALID_RECIPIENT"
	case providertest.Refuse:
		status = "INSUFFICIENT_CREDIT"
	case providertest.Throttle:
		webtest.SetRetryAfter(w, "Retry-After", v)
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case providertest.Accept, providertest.Lose, providertest.Cut:
	}
	message := map[string]any{
		"direction": "out", "to": s.To, "body": s.Text, "from": s.From, "status": status,
		"custom_string": s.Key,
	}
	if status == "SUCCESS" {
		message["message_id"], message["message_parts"], message["message_price"] = s.Reference,
			s.Parts, "0.0650"
	}
	webtest.WriteJSON(w, http.StatusOK, map[string]any{
		"http_code": http.StatusOK, "response_code": "SUCCESS",
		"response_msg": "Messages queued for delivery.",
		"data": map[string]any{
			"total_count": 1, "queued_count": 1, "messages": []any{message},
		},
	})
}

// Receipt is a form posted to the address of the account.
func (c clickSend) Receipt(s *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if s.Callback == "" {
		return nil, nil //nolint:nilnil // This account has no rule for receipts.
	}
	code, failure := "201", ""
	switch r.State {
	case provider.Undelivered:
		code, failure = "301", r.Code
	case provider.Pending:
		code = "200"
	case provider.Delivered:
	}
	return c.post(s.Callback, url.Values{
		"message_id": {s.Reference}, "custom_string": {s.Key}, "status_code": {code},
		"status_text": {"by the handset"},
		"error_code":  {failure}, "error_text": {""},
	})
}

// Inbound is a form posted to the address of the account.
func (c clickSend) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	return c.post(callback, url.Values{
		"message_id": {in.Reference}, "from": {in.From}, "to": {in.To}, "body": {in.Text},
		"original_body": {""},
	})
}

func (c clickSend) post(address string, form url.Values) (*http.Request, error) {
	return webtest.Post(address+"?secret="+url.QueryEscape(c.cfg.Secret),
		"application/x-www-form-urlencoded", []byte(form.Encode()))
}
