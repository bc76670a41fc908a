package httpapitest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

type kannel struct{ cfg Config }

// parameters are the supported ones of sendsms.
var parameters = map[string]bool{
	"username": true, "password": true, "from": true, "to": true, "text": true, "charset": true,
	"coding":   true,
	"validity": true, "dlr-mask": true, "dlr-url": true, "smsc": true,
}

// Read takes a GET of sendsms.
func (k kannel) Read(r *http.Request, body []byte) (webtest.Submit, error) {
	q := r.URL.Query()
	switch {
	case r.Method != http.MethodGet || r.URL.Path != "/cgi-bin/sendsms" || len(body) > 0:
		return webtest.Submit{}, errors.New("no GET of sendsms")
	case q.Get("username") != k.cfg.User || q.Get("password") != k.cfg.Password:
		return webtest.Submit{}, errAccount
	case q.Get("to") == "":
		return webtest.Submit{}, errors.New("missing receiver number")
	case q.Get("charset") != "UTF-8", q.Get("coding") != "0" && q.Get("coding") != "2":
		return webtest.Submit{}, errors.New("text without charset and coding")
	}
	for name, values := range q {
		if !parameters[name] || len(values) != 1 {
			return webtest.Submit{}, fmt.Errorf("%q is there %d times", name, len(values))
		}
	}
	return webtest.Submit{
		To: q.Get("to"), From: q.Get("from"), Text: q.Get("text"), Callback: q.Get("dlr-url"),
		Key: webtest.KeyIn(strings.ReplaceAll(q.Get("dlr-url"), "%d", "0")),
	}, nil
}

// Write answers like the smsbox, which has no answer that asks to slow down.
func (k kannel) Write(w http.ResponseWriter, _ *webtest.Submit, v providertest.Answer) {
	w.Header().Set("Content-Type", "text/html")
	switch v.Reply {
	case providertest.Reject:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("Number(s) has/have been denied by white- and/or black-lists."))
	case providertest.Refuse:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("Temporal failure, try again later."))
	case providertest.Throttle:
		webtest.SetRetryAfter(w, "Retry-After", v) // as a proxy in front of it would
		w.WriteHeader(http.StatusTooManyRequests)
	case providertest.Accept, providertest.Lose, providertest.Cut:
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("0: Accepted for delivery"))
	}
}

// Receipt is a GET of the address that the submit named, with %d filled in.
func (k kannel) Receipt(s *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if s.Callback == "" {
		return nil, nil //nolint:nilnil // no receipt was requested
	}
	status := r.Code
	if status == "" {
		status = map[provider.ReceiptState]string{
			provider.Pending: "8", provider.Delivered: "1", provider.Undelivered: "2",
		}[r.State]
	}
	address := strings.ReplaceAll(s.Callback, "%d", status)
	//nolint:noctx // The carrier sets its context.
	return http.NewRequest(http.MethodGet, address, http.NoBody)
}

// Inbound is the get-url of an sms-service: ...?secret=S&id=%I&from=%p&to=%P&text=%a.
func (k kannel) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	q := url.Values{
		"secret": {k.cfg.Secret}, "id": {in.Reference}, "from": {in.From}, "to": {in.To},
		"text": {in.Text},
	}
	//nolint:noctx // The carrier sets its context.
	return http.NewRequest(http.MethodGet, callback+"?"+q.Encode(), http.NoBody)
}
