package bird

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/bird/birdtest"
	"dispatcher/provider/web/webtest"
)

// accounts returns an account for each way in which Bird signs.
func accounts() map[string]birdtest.Config {
	older := account("messages")
	older.HMAC = true
	return map[string]birdtest.Config{
		"messages": account("messages"), "messages by HMAC": older, "channels": account("channels"),
	}
}

func apiName(cfg birdtest.Config) string {
	if cfg.Channel != "" {
		return "channels"
	}
	return "messages"
}

func receiptRequest(t testing.TB, cfg birdtest.Config, r webtest.Receipt) *http.Request {
	t.Helper()
	request, err := birdtest.New(cfg).Receipt(
		&webtest.Submit{To: "+447700900123", Key: key, Reference: "ref-1", Callback: callback}, r)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func TestReceiptsAreRead(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for name, cfg := range accounts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t, channelSettings(apiName(cfg), nil))
			for said, want := range map[webtest.Receipt]provider.Receipt{
				{State: provider.Delivered}: {
					State: provider.Delivered, Code: "delivered",
				},
				{State: provider.Pending}: {State: provider.Pending, Code: "sent"},
				{State: provider.Undelivered}: {
					State: provider.Undelivered, Cause: provider.UnknownNumber,
					Code: "delivery_failed/1",
				},
				{State: provider.Undelivered, Code: "104"}: {
					State: provider.Undelivered, Cause: provider.BadSender,
					Code: "delivery_failed/104",
				},
				{State: provider.Undelivered, Code: "777"}: {
					State: provider.Undelivered, Code: "delivery_failed/777",
				},
			} {
				call := webtest.MadeCallbackAt(t, receiptRequest(t, cfg, said), at)
				content, err := c.ReadCallback(call)
				if err != nil || content.ReplayID == "" {
					t.Fatalf("once %q, error %v", content.ReplayID, err)
				}
				want.Reference, want.Key = "ref-1", key
				webtest.CheckContent(t, c, call,
					provider.CallbackContent{
						ReplayID: content.ReplayID, Receipts: []provider.Receipt{want},
					})
			}
			webtest.CheckReplayID(t, c,
				webtest.MadeCallbackAt(t, receiptRequest(t, cfg, webtest.Receipt{}), at),
				webtest.MadeCallbackAt(t,
					receiptRequest(t, cfg, webtest.Receipt{State: provider.Undelivered}), at))
		})
	}
}

// TestNoReportFromTheOperatorIsNoEnd: Bird reports failed if the validity ends without a report of
// the operator. The handset may still have the message.
func TestNoReportFromTheOperatorIsNoEnd(t *testing.T) {
	t.Parallel()
	c := open(t, channelSettings("messages", nil))
	fields := url.Values{
		"id": {"ref-1"}, "status": {"delivery_failed"}, "statusReason": {"DLR not received"},
	}
	content, err := c.ReadCallback(signedGet(t, fields))
	if err != nil {
		t.Fatal(err)
	}
	if content.Receipts[0].State != provider.Pending {
		t.Errorf("state %v, want pending", content.Receipts[0].State)
	}
}

// signedGet signs any query by the older scheme.
func signedGet(t testing.TB, fields url.Values) *provider.Callback {
	t.Helper()
	r, err := birdtest.Sign(birdtest.Config{SigningKey: signingKey, HMAC: true},
		callback+"?"+fields.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return webtest.MadeCallbackAt(t, r, time.Now())
}

func TestInboundMessagesAreRead(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for name, cfg := range accounts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := provider.Inbound{
				Reference: "in-1", From: "+447700900123", To: "447700", Text: "STOP & more=1",
				At: at,
			}
			r, err := birdtest.New(cfg).Inbound(callback, in)
			if err != nil {
				t.Fatal(err)
			}
			c, call := open(t, channelSettings(apiName(cfg), nil)), webtest.MadeCallbackAt(t, r, at)
			content, err := c.ReadCallback(call)
			if err != nil {
				t.Fatal(err)
			}
			webtest.CheckContent(t, c, call,
				provider.CallbackContent{
					ReplayID: content.ReplayID, Inbound: []provider.Inbound{in},
				})
		})
	}
}

func TestForgedCallbacksSayNothing(t *testing.T) {
	t.Parallel()
	for name, cfg := range accounts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			genuine := func() *provider.Callback {
				return webtest.MadeCallbackAt(t,
					receiptRequest(t, cfg, webtest.Receipt{State: provider.Undelivered}),
					time.Now())
			}
			webtest.CheckTampered(t, open(t, channelSettings(apiName(cfg), nil)), genuine,
				webtest.Changes{
					"another URL":  func(c *provider.Callback) { c.URL += "&status=delivered&x=1" },
					"another body": func(c *provider.Callback) { c.Body = append(c.Body, ' ') },
					"no signature": func(c *provider.Callback) { c.Header = nil },
					"alg none": func(c *provider.Callback) {
						c.Header["Messagebird-Signature-Jwt"] = []string{
							"eyJhbGciOiJub25lIn0.eyJpc3MiOiJNZXNzYWdlQmlyZCJ9.",
						}
						delete(c.Header, "Messagebird-Signature")
					},
					"another time": func(c *provider.Callback) {
						c.Header["Messagebird-Request-Timestamp"] = []string{"1"}
						delete(c.Header, "Messagebird-Signature-Jwt")
					},
				})
			webtest.CheckSecrets(t, func(keys ...string) provider.CallbackReader {
				files := []any{}
				for _, k := range keys {
					files = append(files, k)
				}
				return open(t,
					channelSettings(apiName(cfg), map[string]any{"signing_key_files": files}))
			}, genuine(), "signing", "old")
		})
	}
}

func TestCallbacksOutOfTimeAreStale(t *testing.T) {
	t.Parallel()
	late := map[string]time.Duration{
		"messages": 5 * time.Minute, "messages by HMAC": 9 * time.Hour, "channels": 9 * time.Hour,
	}
	for name, cfg := range accounts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			webtest.CheckAgeLimits(t, open(t, channelSettings(apiName(cfg), nil)),
				func(age time.Duration) *provider.Callback {
					return webtest.MadeCallbackAt(t, receiptRequest(t, cfg, webtest.Receipt{}),
						time.Now().Add(age))
				}, late[name], 5*time.Minute)
		})
	}
}

// signedEvent signs events of the Channels API.
func signedEvent(t testing.TB) func(body string) *provider.Callback {
	return func(body string) *provider.Callback {
		t.Helper()
		r, err := birdtest.SignBody(account("channels"), callback, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return webtest.MadeCallbackAt(t, r, time.Now())
	}
}

func TestGenuineCallbacksThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	webtest.CheckRefused(t, open(t, channelSettings("channels", nil)), provider.ErrMalformed,
		webtest.Bodies(
			signedEvent(t), `{`, `[]`,
			`{"service":"channels","event":"sms.outbound","payload":{"status":"delivered"}}`,
			`{"service":"channels","event":"sms.outbound","payload":{"id":"1"}}`,
			`{"service":"channels","event":"sms.inbound","payload":{}}`,
		))
	webtest.CheckRefused(t, open(t, channelSettings("messages", nil)), provider.ErrMalformed,
		map[string]*provider.Callback{
			"no id":     signedGet(t, url.Values{"status": {"delivered"}}),
			"no number": signedGet(t, url.Values{"originator": {""}, "body": {"STOP"}}),
		})
}

func TestGenuineCallbacksOfOtherKindsMeanNothing(t *testing.T) {
	t.Parallel()
	webtest.CheckIgnored(t, open(t, channelSettings("messages", nil)),
		map[string]*provider.Callback{"ping": signedGet(t, url.Values{"ping": {"1"}})})
	webtest.CheckIgnored(t, open(t, channelSettings("channels", nil)), webtest.Bodies(
		signedEvent(t), `{}`, `{"service":"conversations","event":"sms.outbound"}`,
		`{"service":"channels","event":"sms.interaction"}`,
	))
}

func FuzzReadCallback(f *testing.F) {
	for _, cfg := range accounts() {
		r := receiptRequest(f, cfg, webtest.Receipt{State: provider.Delivered})
		c := webtest.MadeCallbackAt(f, r, time.Now())
		f.Add(c.Method, c.URL, r.Header.Get("MessageBird-Signature-JWT"),
			r.Header.Get("MessageBird-Signature"), r.Header.Get("MessageBird-Request-Timestamp"),
			c.Body)
	}
	listeners := []provider.CallbackReader{
		open(f, channelSettings("messages", map[string]any{"signing_key_files": "old"})),
		open(f, channelSettings("channels", map[string]any{"signing_key_files": "old"})),
	}
	f.Fuzz(func(t *testing.T, method, address, token, signature, stamp string, body []byte) {
		for _, l := range listeners {
			content, err := l.ReadCallback(&provider.Callback{
				Method: method, URL: address, Body: body, At: time.Now(),
				Header: map[string][]string{
					"Messagebird-Signature-Jwt": {token}, "Messagebird-Signature": {signature},
					"Messagebird-Request-Timestamp": {stamp},
				},
			})
			if err == nil || content.Receipts != nil || content.Inbound != nil {
				t.Error("accepted a callback that it cannot verify")
			}
		}
	})
}

// FuzzReading reads any signed input.
func FuzzReading(f *testing.F) {
	f.Add(`status=delivered&id=1`,
		[]byte(
			`{"service":"channels","event":"sms.outbound","payload":{"id":"1","status":"delivered"}}`))
	f.Fuzz(func(t *testing.T, query string, body []byte) {
		signed := account("channels")
		r, err := birdtest.SignBody(signed, callback, body)
		if err != nil {
			return
		}
		content, err := open(t, channelSettings("channels", nil)).ReadCallback(
			webtest.MadeCallbackAt(t, r, time.Now()))
		check(t, content, err)
		signed = birdtest.Config{SigningKey: signingKey}
		if r, err = birdtest.Sign(signed, callback+"?"+query); err != nil {
			return
		}
		c := webtest.MadeCallbackAt(t, r, time.Now())
		c.URL = callback + "?" + query
		content, err = open(t, channelSettings("messages", nil)).ReadCallback(c)
		check(t, content, err)
	})
}

func check(t testing.TB, content provider.CallbackContent, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, provider.ErrMalformed) {
		t.Errorf("a signed callback: %v", err)
	}
	for _, r := range content.Receipts {
		if r.Reference == "" || len(r.Code) > 64 {
			t.Errorf("a receipt without reference or with a code of %d bytes", len(r.Code))
		}
	}
}
