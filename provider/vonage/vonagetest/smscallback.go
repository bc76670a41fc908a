package vonagetest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

// Receipt is the delivery receipt of a part. Its code is "<status>/<err-code>", such as "failed/8".
func (ss smsShape) Receipt(s *webtest.Submit, r webtest.Receipt) (*http.Request, error) {
	if s.Callback == "" {
		return nil, nil //nolint:nilnil // No receipt was asked for.
	}
	status, code, _ := strings.Cut(r.Code, "/")
	if status == "" {
		status, code = usual(r.State)
	}
	return ss.cfg.formCall(s.Callback, map[string]string{
		"msisdn": bare(s.To), "to": s.From, "network-code": "23415", "messageId": s.Reference,
		"price":  "0.03330000",
		"status": status, "scts": time.Now().UTC().Format("0601021504"), "err-code": code,
		"client-ref": s.Key,
	})
}

func usual(state provider.ReceiptState) (status, code string) {
	switch state {
	case provider.Delivered:
		return "delivered", "0"
	case provider.Undelivered:
		return "failed", "8"
	case provider.Pending:
	}
	return "accepted", "0"
}

// Inbound is the callback with a message of a subscriber, or a part of one.
func (ss smsShape) Inbound(callback string, in provider.Inbound) (*http.Request, error) {
	parameters := map[string]string{
		"msisdn": bare(in.From), "to": bare(in.To), "messageId": in.Reference, "text": in.Text,
		"type":    "unicode",
		"keyword": strings.ToUpper(strings.SplitN(in.Text+" ", " ", 2)[0]),
	}
	if in.Parts > 1 {
		parameters["concat"], parameters["concat-ref"] = "true", strconv.Itoa(int(in.Group))
		parameters["concat-total"], parameters["concat-part"] = strconv.Itoa(in.Parts),
			strconv.Itoa(in.Part+1)
	}
	return ss.cfg.formCall(callback, parameters)
}

// formCall is a callback of the SMS API, a POST with a form, signed with HMAC-SHA256 over its
// parameters.
func (c *Config) formCall(callback string, parameters map[string]string) (*http.Request, error) {
	now := time.Now().UTC()
	parameters["api-key"], parameters["message-timestamp"] = c.APIKey, now.Format(time.DateTime)
	if c.Secret != "" {
		parameters["timestamp"], parameters["nonce"] = strconv.FormatInt(now.Unix(), 10),
			rand.Text()
		parameters["sig"] = c.sign(parameters)
	}
	form := url.Values{}
	for name, value := range parameters {
		form.Set(name, value)
	}
	return webtest.Post(callback, "application/x-www-form-urlencoded", []byte(form.Encode()))
}

func (c *Config) sign(parameters map[string]string) string {
	names := make([]string, 0, len(parameters))
	for name := range parameters {
		names = append(names, name)
	}
	sort.Strings(names)
	mac := hmac.New(sha256.New, []byte(c.Secret))
	for _, name := range names {
		value := strings.ReplaceAll(strings.ReplaceAll(parameters[name], "&", "_"), "=", "_")
		mac.Write([]byte("&" + name + "=" + value))
	}
	return strings.ToUpper(hex.EncodeToString(mac.Sum(nil)))
}
