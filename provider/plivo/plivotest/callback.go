package plivotest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

// Receipt is a status callback.
func (p *protocol) Receipt(submit *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if submit.Callback == "" {
		return nil, nil //nolint:nilnil // It wants none.
	}
	status, code := "sent", r.Code
	switch r.State {
	case provider.Delivered:
		status = "delivered"
		if code == "" {
			code = "000"
		}
	case provider.Undelivered:
		status = "undelivered"
		if code == "" {
			code = "80"
		}
	case provider.Pending:
	}
	at := submit.At.UTC().Format("2006-01-02 15:04:05.000000")
	return p.post(submit.Callback, url.Values{
		"From": {submit.From}, "To": {strings.TrimPrefix(submit.To, "+")}, "Type": {"sms"},
		"Status": {status}, "ErrorCode": {code},
		"MessageUUID": {submit.Reference}, "ParentMessageUUID": {submit.Reference},
		"Units":     {strconv.Itoa(submit.Parts)},
		"TotalRate": {"0.0050"}, "TotalAmount": {"0.0050"}, "MCC": {"234"}, "MNC": {"15"},
		"PartInfo": {"1 of 1"}, "PowerpackUUID": {""}, "Sequence": {"1"},
		"MessageTime": {at}, "QueuedTime": {at}, "SentTime": {at}, "DeliveryReportTime": {at},
		"requester_ip": {"192.0.2.7"},
	})
}

// Inbound is the webhook for a message of a subscriber.
func (p *protocol) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	return p.post(callback, url.Values{
		"From": {strings.TrimPrefix(in.From, "+")}, "To": {strings.TrimPrefix(in.To, "+")},
		"Text": {in.Text}, "Type": {"sms"},
		"MessageUUID": {in.Reference}, "Units": {"1"}, "TotalRate": {"0"}, "TotalAmount": {"0"},
	})
}

func (p *protocol) post(callback string, form url.Values) (*http.Request, error) {
	r, err := webtest.Post(callback, "application/x-www-form-urlencoded", []byte(form.Encode()))
	if err != nil {
		return nil, err
	}
	nonce := rand.Text()
	r.Header.Set("X-Plivo-Signature-V2", SignV2(p.cfg.AuthToken, callback, nonce))
	r.Header.Set("X-Plivo-Signature-V2-Nonce", nonce)
	if !p.cfg.OnlyV2 {
		signature := SignV3(p.cfg.AuthToken, callback, nonce, form)
		r.Header.Set("X-Plivo-Signature-V3", signature)
		r.Header.Set("X-Plivo-Signature-Ma-V3", signature)
		r.Header.Set("X-Plivo-Signature-V3-Nonce", nonce)
	}
	return r, nil
}

// SignV2 is the value of X-Plivo-Signature-V2: over the URL up to its query, and the nonce.
func SignV2(token, callback, nonce string) string {
	base, _, _ := strings.Cut(callback, "?")
	return digest(token, base+nonce)
}

// SignV3 is the value of X-Plivo-Signature-V3 for a form of single values.
func SignV3(token, callback, nonce string, form url.Values) string {
	base, query, found := strings.Cut(callback, "?")
	text := base
	if found || len(form) > 0 {
		text += "?"
	}
	if found {
		values, _ := url.ParseQuery(query)
		text += join(values, "=", "&")
		if len(form) > 0 {
			text += "."
		}
	}
	return digest(token, text+join(form, "", "")+"."+nonce)
}

func join(values url.Values, between, after string) string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		names[i] = name + between + values.Get(name)
	}
	return strings.Join(names, after)
}

func digest(token, text string) string {
	h := hmac.New(sha256.New, []byte(token))
	h.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}
