package bird_test

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/bird/birdtest"
	"dispatcher/provider/web/webtest"
)

// accounts are all the ways in which Bird signs.
func accounts() map[string]birdtest.Config {
	older := account("messages")
	older.HMAC = true
	return map[string]birdtest.Config{"messages": account("messages"), "messages by HMAC": older, "channels": account("channels")}
}

func apiOf(cfg birdtest.Config) string {
	if cfg.Channel != "" {
		return "channels"
	}
	return "messages"
}

func receiptRequest(t testing.TB, cfg birdtest.Config, r webtest.Receipt) *http.Request {
	t.Helper()
	request, err := birdtest.New(cfg).Receipt(&webtest.Submit{To: "+447700900123", Key: key, Reference: "ref-1", Callback: callback}, r)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func TestReceiptsAreHeard(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for name, cfg := range accounts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t, settings(apiOf(cfg), nil))
			for _, test := range []struct {
				said webtest.Receipt
				want provider.Receipt
			}{
				{webtest.Receipt{State: provider.Delivered}, provider.Receipt{State: provider.Delivered, Code: "delivered"}},
				{webtest.Receipt{State: provider.Pending}, provider.Receipt{State: provider.Pending, Code: "sent"}},
				{webtest.Receipt{State: provider.Undelivered}, provider.Receipt{State: provider.Undelivered, Cause: provider.UnknownNumber, Code: "delivery_failed/1"}},
				{webtest.Receipt{State: provider.Undelivered, Code: "104"}, provider.Receipt{State: provider.Undelivered, Cause: provider.BadSender, Code: "delivery_failed/104"}},
				{webtest.Receipt{State: provider.Undelivered, Code: "777"}, provider.Receipt{State: provider.Undelivered, Code: "delivery_failed/777"}},
			} {
				heard, err := c.Hear(asCallback(t, receiptRequest(t, cfg, test.said), at))
				if err != nil {
					t.Fatal(err)
				}
				test.want.Reference, test.want.Key, test.want.At = "ref-1", key, at
				if diff := cmp.Diff([]provider.Receipt{test.want}, heard.Receipts); diff != "" {
					t.Error(diff)
				}
				if heard.Once == "" || heard.Inbound != nil {
					t.Errorf("once %q, %d inbound messages", heard.Once, len(heard.Inbound))
				}
			}
		})
	}
}

// TestNoReportFromTheOperatorIsNoEnd: Bird calls it failed when the operator said nothing until the validity
// ended; the handset may have the message.
func TestNoReportFromTheOperatorIsNoEnd(t *testing.T) {
	t.Parallel()
	c := open(t, settings("messages", nil))
	fields := url.Values{"id": {"ref-1"}, "status": {"delivery_failed"}, "statusReason": {"DLR not received"}}
	heard, err := c.Hear(signedGet(t, fields))
	if err != nil {
		t.Fatal(err)
	}
	if heard.Receipts[0].State != provider.Pending {
		t.Errorf("state %v, want pending", heard.Receipts[0].State)
	}
}

// signedGet signs a query of the test's own by the older scheme.
func signedGet(t testing.TB, fields url.Values) *provider.Callback {
	t.Helper()
	r, err := birdtest.Sign(birdtest.Config{SigningKey: signingKey, HMAC: true}, callback+"?"+fields.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return asCallback(t, r, time.Now())
}

func TestMessagesOfSubscribersAreHeard(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for name, cfg := range accounts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := provider.Inbound{Reference: "in-1", From: "+447700900123", To: "447700", Text: "STOP & more=1", At: at}
			r, err := birdtest.New(cfg).Inbound(callback, in)
			if err != nil {
				t.Fatal(err)
			}
			heard, err := open(t, settings(apiOf(cfg), nil)).Hear(asCallback(t, r, at))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]provider.Inbound{in}, heard.Inbound); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestForgedCallbacksSayNothing(t *testing.T) {
	t.Parallel()
	for name, cfg := range accounts() {
		for how, forge := range map[string]func(*provider.Callback){
			"another URL":  func(c *provider.Callback) { c.URL += "&status=delivered&x=1" },
			"another body": func(c *provider.Callback) { c.Body = append(c.Body, ' ') },
			"no signature": func(c *provider.Callback) { c.Header = nil },
			"alg none": func(c *provider.Callback) {
				c.Header["Messagebird-Signature-Jwt"] = []string{"eyJhbGciOiJub25lIn0.eyJpc3MiOiJNZXNzYWdlQmlyZCJ9."}
				delete(c.Header, "Messagebird-Signature")
			},
			"another time": func(c *provider.Callback) {
				c.Header["Messagebird-Request-Timestamp"] = []string{"1"}
				delete(c.Header, "Messagebird-Signature-Jwt")
			},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				forged := asCallback(t, receiptRequest(t, cfg, webtest.Receipt{State: provider.Undelivered}), time.Now())
				forged.Header = maps.Clone(forged.Header)
				forge(forged)
				heard, err := open(t, settings(apiOf(cfg), nil)).Hear(forged)
				if !errors.Is(err, provider.ErrForged) || heard.Receipts != nil {
					t.Errorf("heard %d receipts, error %v", len(heard.Receipts), err)
				}
			})
		}
	}
}

func TestCallbacksOfAnotherKeyAreForged(t *testing.T) {
	t.Parallel()
	for name, cfg := range accounts() {
		good := asCallback(t, receiptRequest(t, cfg, webtest.Receipt{}), time.Now())
		if _, err := open(t, settings(apiOf(cfg), map[string]any{"signing_key_files": "old"})).Hear(good); !errors.Is(err, provider.ErrForged) {
			t.Errorf("%s: another key: %v", name, err)
		}
		if _, err := open(t, settings(apiOf(cfg), map[string]any{"signing_key_files": nil})).Hear(good); !errors.Is(err, provider.ErrForged) {
			t.Errorf("%s: no key: %v", name, err)
		}
		if _, err := open(t, settings(apiOf(cfg), map[string]any{"signing_key_files": []any{"signing", "old"}})).Hear(good); err != nil {
			t.Errorf("%s: the first of two live keys: %v", name, err)
		}
	}
}

func TestCallbacksOutOfTimeAreStale(t *testing.T) {
	t.Parallel()
	for name, cfg := range accounts() {
		c := open(t, settings(apiOf(cfg), nil))
		for _, age := range []time.Duration{-6 * time.Minute, 6 * time.Minute} {
			late := asCallback(t, receiptRequest(t, cfg, webtest.Receipt{}), time.Now().Add(age))
			if heard, err := c.Hear(late); !errors.Is(err, provider.ErrStale) || heard.Receipts != nil {
				t.Errorf("%s, %s old: %v", name, age, err)
			}
		}
		for _, age := range []time.Duration{-4 * time.Minute, 4 * time.Minute} {
			if _, err := c.Hear(asCallback(t, receiptRequest(t, cfg, webtest.Receipt{}), time.Now().Add(age))); err != nil {
				t.Errorf("%s, %s old: %v", name, age, err)
			}
		}
	}
}

func TestGenuineCallbacksOfOtherKindsMeanNothing(t *testing.T) {
	t.Parallel()
	heard, err := open(t, settings("messages", nil)).Hear(signedGet(t, url.Values{"ping": {"1"}}))
	if err != nil || heard.Receipts != nil || heard.Inbound != nil {
		t.Errorf("heard %+v, error %v", heard, err)
	}
}

func FuzzHear(f *testing.F) {
	for _, cfg := range accounts() {
		r := receiptRequest(f, cfg, webtest.Receipt{State: provider.Delivered})
		c := asCallback(f, r, time.Now())
		f.Add(c.Method, c.URL, r.Header.Get("MessageBird-Signature-JWT"), r.Header.Get("MessageBird-Signature"), r.Header.Get("MessageBird-Request-Timestamp"), c.Body)
	}
	listeners := []provider.Listener{open(f, settings("messages", map[string]any{"signing_key_files": "old"})), open(f, settings("channels", map[string]any{"signing_key_files": "old"}))}
	f.Fuzz(func(t *testing.T, method, address, token, signature, stamp string, body []byte) {
		for _, l := range listeners {
			heard, err := l.Hear(&provider.Callback{
				Method: method, URL: address, Body: body, At: time.Now(),
				Header: map[string][]string{
					"Messagebird-Signature-Jwt": {token}, "Messagebird-Signature": {signature}, "Messagebird-Request-Timestamp": {stamp},
				},
			})
			if err == nil || heard.Receipts != nil || heard.Inbound != nil {
				t.Error("believed what it cannot verify")
			}
		}
	})
}

// FuzzReading reads what is signed, whatever it says.
func FuzzReading(f *testing.F) {
	f.Add(`status=delivered&id=1`, []byte(`{"service":"channels","event":"sms.outbound","payload":{"id":"1","status":"delivered"}}`))
	f.Fuzz(func(t *testing.T, query string, body []byte) {
		signed := account("channels")
		r, err := birdtest.SignBody(signed, callback, body)
		if err != nil {
			return
		}
		heard, err := open(t, settings("channels", nil)).Hear(asCallback(t, r, time.Now()))
		check(t, heard, err)
		signed = birdtest.Config{SigningKey: signingKey}
		if r, err = birdtest.Sign(signed, callback+"?"+query); err != nil {
			return
		}
		c := asCallback(t, r, time.Now())
		c.URL = callback + "?" + query
		heard, err = open(t, settings("messages", nil)).Hear(c)
		check(t, heard, err)
	})
}

func check(t testing.TB, heard provider.Heard, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, provider.ErrMalformed) {
		t.Errorf("a signed callback: %v", err)
	}
	for _, r := range heard.Receipts {
		if r.Reference == "" || len(r.Code) > 64 {
			t.Errorf("a receipt without reference or with a code of %d bytes", len(r.Code))
		}
	}
}
