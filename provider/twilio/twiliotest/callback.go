package twiliotest

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Twilio's scheme.
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"sort"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

// Receipt is a status callback.
func (p *protocol) Receipt(submit *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if submit.Callback == "" {
		return nil, nil //nolint:nilnil // It wants none.
	}
	form := url.Values{
		"AccountSid": {p.cfg.AccountSID}, "ApiVersion": {"2010-04-01"}, "From": {submit.From},
		"To":         {submit.To},
		"MessageSid": {submit.Reference}, "SmsSid": {submit.Reference},
	}
	status, code := "sent", r.Code
	switch r.State {
	case provider.Delivered:
		status = "delivered"
	case provider.Undelivered:
		status = "undelivered"
		if code == "" {
			code = "30003"
		}
	case provider.Pending:
	}
	form.Set("MessageStatus", status)
	form.Set("SmsStatus", status)
	if code != "" {
		form.Set("ErrorCode", code)
	}
	return p.post(submit.Callback, form)
}

// Inbound is the webhook for a message of a subscriber.
func (p *protocol) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	return p.post(callback, url.Values{
		"AccountSid": {p.cfg.AccountSID}, "ApiVersion": {"2010-04-01"}, "From": {in.From},
		"To": {in.To}, "Body": {in.Text},
		"MessageSid": {in.Reference}, "SmsSid": {in.Reference}, "SmsMessageSid": {in.Reference},
		"SmsStatus": {"received"}, "NumMedia": {"0"}, "NumSegments": {"1"},
	})
}

// post signs a form: the URL, then each parameter's name and value in the order of the names,
// without separators.
func (p *protocol) post(callback string, form url.Values) (*http.Request, error) {
	r, err := webtest.Post(callback, "application/x-www-form-urlencoded; charset=UTF-8",
		[]byte(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Twilio-Signature", Sign(p.cfg.AuthToken, callback, form))
	return r, nil
}

// Sign is the value of X-Twilio-Signature for a form.
func Sign(authToken, callback string, form url.Values) string {
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	sort.Strings(names)
	h := hmac.New(sha1.New, []byte(authToken))
	h.Write([]byte(callback))
	for _, name := range names {
		h.Write([]byte(name + form.Get(name)))
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// JSON is a callback with its fields as JSON, signed through the digest of the body.
func JSON(cfg Config, callback string, fields map[string]string) (*http.Request, error) {
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	u, err := url.Parse(callback)
	if err != nil {
		return nil, err
	}
	query := "bodySHA256=" + hex.EncodeToString(sum[:])
	if u.RawQuery != "" {
		query = u.RawQuery + "&" + query
	}
	u.RawQuery = query
	r, err := webtest.Post(u.String(), "application/json", body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Twilio-Signature", Sign(cfg.AuthToken, u.String(), nil))
	return r, nil
}
