package sinch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

// resigned is a genuine callback with any body.
func resigned(body string) *provider.Callback { return sign(signed(), body) }

// sign puts another body into a callback, and signs it.
func sign(c *provider.Callback, body string) *provider.Callback {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body + "." + c.Get(headerNonce) + "." + c.Get(headerTime)))
	c.Body = []byte(body)
	c.Header[headerSignature] = []string{base64.StdEncoding.EncodeToString(mac.Sum(nil))}
	return c
}

// FuzzReadCallback hears every body twice: unsigned it must say nothing, signed it may say what it likes
// without a panic and with bounded codes.
func FuzzReadCallback(f *testing.F) {
	f.Add(string(signed().Body), "", "", "")
	f.Add(`{"type":"mo_text","id":"x","from":"447700900123","to":"12345","body":"STOP"}`, "QUJD",
		"n", "1795255200")
	f.Add(
		`{"type":"delivery_report_sms","batch_id":"b","statuses":[{"status":"Delivered","code":0,"count":1}]}`, "=", "", "x")
	f.Fuzz(func(t *testing.T, body, signature, nonce, stamp string) {
		c := listener()
		forged := resigned(body)
		forged.Header = map[string][]string{
			headerSignature: {signature}, headerNonce: {nonce}, headerTime: {stamp},
			headerAlgorithm: {algorithm},
		}
		webtest.CheckForged(t, c, forged)
		content, err := c.ReadCallback(resigned(body))
		webtest.CheckBounded(t, content, err)
	})
}
