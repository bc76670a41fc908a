package httpapi_test

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"strconv"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

// signed is a gateway that signs its callbacks.
const signed = `
base_url: https://gateway.example.com
request: {path: /send, form: {to: "{to}", text: "{text}"}}
answer: {id: "header:X-Id", outcomes: [{status: 2xx, outcome: accepted}]}
verify:
  by: hmac
  at: header:X-Signature
  algorithm: sha512
  encoding: base64
  prefix: "v1="
  signed: "{time}.{method}.{url}.{body}"
  time: header:X-Time
  secret_files: [old, secret]
receipts: {reference: "json:/id", state: "query:state", states: {ok: delivered}}
`

// signedCallback signs without the code under test.
func signedCallback(at time.Time, stamp string) *provider.Callback {
	c := &provider.Callback{
		Method: "POST", URL: callback + "?state=ok", Body: []byte(`{"id":"a"}`), At: at,
	}
	mac := hmac.New(sha512.New, []byte(secret))
	mac.Write([]byte(stamp + "." + c.Method + "." + c.URL + "." + string(c.Body)))
	c.Header = map[string][]string{
		"X-Time": {stamp}, "X-Signature": {"v1=" + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
	return c
}

func TestOnlySignedCallbacksAreAccepted(t *testing.T) {
	t.Parallel()
	c, now := open(t, parse(t, signed)), time.Now()
	stamp := strconv.FormatInt(now.Unix(), 10)
	content, err := c.ReadCallback(signedCallback(now, stamp))
	if err != nil || len(content.Receipts) != 1 ||
		content.Receipts[0].State != provider.Delivered || content.ReplayID == "" {
		t.Fatalf("content %+v, error %v", content, err)
	}
	if _, err := c.ReadCallback(signedCallback(now,
		strconv.FormatInt(now.UnixMilli(), 10))); err != nil {
		t.Errorf("a time in milliseconds: %v", err)
	}
	webtest.CheckTampered(t, c, func() *provider.Callback { return signedCallback(now, stamp) },
		webtest.Changes{
			"body":   func(c *provider.Callback) { c.Body = []byte(`{"id":"b"}`) },
			"query":  func(c *provider.Callback) { c.URL += "&state=ko" },
			"method": func(c *provider.Callback) { c.Method = "PUT" },
			"time": func(c *provider.Callback) {
				c.Header["X-Time"] = []string{stamp + "0"}
			},
			"no signature": func(c *provider.Callback) { delete(c.Header, "X-Signature") },
			"no prefix": func(c *provider.Callback) {
				c.Header["X-Signature"][0] = c.Header["X-Signature"][0][3:]
			},
			"empty": func(c *provider.Callback) { c.Header["X-Signature"][0] = "v1=" },
		})
	webtest.CheckSecrets(t, func(names ...string) provider.CallbackReader {
		if len(names) == 0 {
			return open(t, undescribed(t))
		}
		values := parse(t, signed)
		values["verify"].(map[string]any)["secret_files"] = texts(names)
		return open(t, values)
	}, signedCallback(now, stamp), "secret", "old")
	webtest.CheckAgeLimits(t, c,
		func(age time.Duration) *provider.Callback { return signedCallback(now.Add(age), stamp) },
		5*time.Minute, 5*time.Minute)
	webtest.CheckReplayID(t, c, signedCallback(now, stamp),
		signedCallback(now, strconv.FormatInt(now.Unix()-1, 10)))
	webtest.CheckRefused(t, c, provider.ErrMalformed,
		map[string]*provider.Callback{"a time that is none": signedCallback(now, "today")})
}

func texts(list []string) []any {
	var values []any
	for _, text := range list {
		values = append(values, text)
	}
	return values
}

// undescribed is a gateway whose description does not say how callbacks are verified.
func undescribed(t testing.TB) map[string]any {
	t.Helper()
	values := parse(t, batch)
	delete(values, "verify")
	delete(values, "receipts")
	return values
}

func TestBasicAuthenticationTakesTwoPasswords(t *testing.T) {
	t.Parallel()
	values := parse(t, batch)
	values["verify"] = map[string]any{
		"by": "basic", "user": "gw", "secret_files": []any{"old", "secret"},
	}
	c := open(t, values)
	for authorization, good := range map[string]bool{
		base64.StdEncoding.EncodeToString([]byte("gw:" + secret)):    true,
		base64.StdEncoding.EncodeToString([]byte("gw:0ld-hunter2x")): true,
		base64.StdEncoding.EncodeToString([]byte("gw:")):             false,
		base64.StdEncoding.EncodeToString([]byte("wg:" + secret)):    false, "": false,
	} {
		_, err := c.ReadCallback(&provider.Callback{
			Method: "POST", URL: callback, Body: []byte(`{}`),
			Header: map[string][]string{"Authorization": {"Basic " + authorization}},
		})
		if good != (err == nil) || !good && !errors.Is(err, provider.ErrForged) {
			t.Errorf("good %v, error %v", good, err)
		}
	}
}

func TestWithoutVerificationEveryCallbackIsForged(t *testing.T) {
	t.Parallel()
	c := open(t, undescribed(t))
	if _, err := c.ReadCallback(&provider.Callback{
		Method: "POST", URL: callback, Certificate: true,
	}); !errors.Is(err, provider.ErrForged) {
		t.Errorf("error %v", err)
	}
	if c.Capabilities().Receipts {
		t.Error("the capabilities include receipts")
	}
}
