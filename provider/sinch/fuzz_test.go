package sinch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"dispatcher/provider"
)

// resigned is a genuine callback with any body.
func resigned(body string) *provider.Callback {
	c := signed()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body + "." + c.Get(headerNonce) + "." + c.Get(headerTime)))
	c.Body = []byte(body)
	c.Header[headerSignature] = []string{base64.StdEncoding.EncodeToString(mac.Sum(nil))}
	return c
}

// FuzzHear hears every body twice: unsigned it must say nothing, signed it may say what it likes
// without a panic and with bounded codes.
func FuzzHear(f *testing.F) {
	f.Add(string(signed().Body), "", "", "")
	f.Add(`{"type":"mo_text","id":"x","from":"447700900123","to":"12345","body":"STOP"}`, "QUJD", "n", "1795255200")
	f.Add(`{"type":"delivery_report_sms","batch_id":"b","statuses":[{"status":"Delivered","code":0,"count":1}]}`, "=", "", "x")
	f.Fuzz(func(t *testing.T, body, signature, nonce, stamp string) {
		c := listener()
		forged := resigned(body)
		forged.Header = map[string][]string{
			headerSignature: {signature}, headerNonce: {nonce}, headerTime: {stamp}, headerAlgorithm: {algorithm},
		}
		if h, err := c.Hear(forged); err == nil || len(h.Receipts)+len(h.Inbound) != 0 {
			t.Fatalf("a forged callback says %+v", h)
		}
		h, err := c.Hear(resigned(body))
		if err != nil && len(h.Receipts)+len(h.Inbound) != 0 {
			t.Fatal("an error and receipts at once")
		}
		for _, r := range h.Receipts {
			if len(r.Code) > 64 || strings.Contains(r.Code, recipient[1:]) || (r.Key == "" && r.Reference == "") {
				t.Fatalf("receipt %+v", r)
			}
		}
	})
}
