package telnyx_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/textproto"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/provider"
	"dispatcher/provider/telnyx/telnyxtest"
	"dispatcher/provider/web"
)

// signed is a webhook that was signed at a time and comes in now.
func signed(k ed25519.PrivateKey, at time.Time, body []byte) *provider.Callback {
	c := &provider.Callback{Method: "POST", URL: web.WithKey(callback, "ffffffffffffffffffffffffffffffff"), Body: body, At: time.Now(), Header: map[string][]string{}}
	for name, value := range telnyxtest.Sign(k, at, body) {
		c.Header[textproto.CanonicalMIMEHeaderKey(name)] = []string{value}
	}
	return c
}

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile("testdata/callbacks/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestRecordedWebhooksAreRead also shows that the key is taken from what is signed: the URL that was called
// names another one.
func TestRecordedWebhooksAreRead(t *testing.T) {
	t.Parallel()
	c := listening(t, signing)
	for name, want := range map[string]provider.Heard{
		"finalized": {Receipts: []provider.Receipt{{
			Reference: "834f3d53-8a3c-4aa0-a733-7f2d682a72df", Key: key, State: provider.Delivered, Code: "delivered",
		}}},
		"failed": {Receipts: []provider.Receipt{{
			Reference: "834f3d53-8a3c-4aa0-a733-7f2d682a72df", State: provider.Undelivered, Cause: provider.Spam, Code: "delivery_failed/40002",
		}}},
		"received": {Inbound: []provider.Inbound{{
			Reference: "84cca175-9755-4859-b67f-4730d7f58aa3", From: "+447700900123", To: "+447700900999", Text: "STOP",
		}}},
	} {
		call := signed(signing, time.Now(), recorded(t, name))
		heard, err := c.Hear(call)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want.Once = call.Get("Telnyx-Signature-Ed25519")
		for i := range want.Receipts {
			want.Receipts[i].At = call.At
		}
		for i := range want.Inbound {
			want.Inbound[i].At = call.At
		}
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestStatusesMeanWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	c := listening(t, signing)
	for _, w := range []struct {
		status, errors string
		state          provider.ReceiptState
		cause          provider.Cause
		shown          string
	}{
		{"queued", "", provider.Pending, "", "queued"},
		{"sending", "", provider.Pending, "", "sending"},
		{"sent", "", provider.Pending, "", "sent"},
		{"delivery_unconfirmed", `{"code":"40008"}`, provider.Pending, "", "delivery_unconfirmed/40008"},
		{"something new", "", provider.Pending, "", "other"},
		{"delivered", "", provider.Delivered, "", "delivered"},
		{"expired", "", provider.Undelivered, provider.Expired, "expired"},
		{"cancelled", "", provider.Undelivered, provider.Deleted, "cancelled"},
		{"sending_failed", `{"code":40014}`, provider.Undelivered, provider.Expired, "sending_failed/40014"},
		{"sending_failed", `{"code":"40300"}`, provider.Undelivered, provider.OptedOut, "sending_failed/40300"},
		{"delivery_failed", `{"code":"40001"},{"code":"40002"}`, provider.Undelivered, provider.NotMobile, "delivery_failed/40001"},
		{"delivery_failed", `{"code":"49999"}`, provider.Undelivered, "", "delivery_failed/49999"},
		{"delivery_failed", `{"code":"+447700900123"}`, provider.Undelivered, "", "delivery_failed/other"},
		{"expired", `{"code":"40008"}`, provider.Undelivered, provider.Expired, "expired/40008"},
	} {
		body := fmt.Appendf(nil, `{"data":{"event_type":"message.finalized","payload":{"id":"1","to":[{"status":%q}],"errors":[%s]}}}`, w.status, w.errors)
		call := signed(signing, time.Now(), body)
		heard, err := c.Hear(call)
		if err != nil {
			t.Errorf("%s: %v", w.status, err)
			continue
		}
		want := []provider.Receipt{{Reference: "1", State: w.state, Cause: w.cause, Code: w.shown, At: call.At}}
		if diff := cmp.Diff(want, heard.Receipts); diff != "" {
			t.Errorf("%s: %s", w.status, diff)
		}
	}
}

func TestForgedWebhooksSayNothing(t *testing.T) {
	t.Parallel()
	c := listening(t, signing)
	body := recorded(t, "failed")
	for name, forge := range map[string]func(*provider.Callback){
		"other body": func(c *provider.Callback) {
			c.Body = bytes.Replace(c.Body, []byte("delivery_failed"), []byte("delivered"), 1)
		},
		"other time":   func(c *provider.Callback) { c.Header["Telnyx-Timestamp"] = []string{fmt.Sprint(time.Now().Unix() + 1)} },
		"no time":      func(c *provider.Callback) { delete(c.Header, "Telnyx-Timestamp") },
		"no signature": func(c *provider.Callback) { delete(c.Header, "Telnyx-Signature-Ed25519") },
		"signature of zeros": func(c *provider.Callback) {
			c.Header["Telnyx-Signature-Ed25519"] = []string{base64.StdEncoding.EncodeToString(make([]byte, 64))}
		},
		"short signature": func(c *provider.Callback) { c.Header["Telnyx-Signature-Ed25519"][0] = "AAAA" },
		"another key":     func(c *provider.Callback) { *c = *signed(other, time.Now(), body) },
	} {
		call := signed(signing, time.Now(), body)
		forge(call)
		if heard, err := c.Hear(call); !errors.Is(err, provider.ErrForged) || heard.Receipts != nil {
			t.Errorf("%s: %v, %v", name, heard.Receipts, err)
		}
	}
	if _, err := listening(t).Hear(signed(signing, time.Now(), body)); !errors.Is(err, provider.ErrForged) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := listening(t, other, signing).Hear(signed(signing, time.Now(), body)); err != nil {
		t.Errorf("the second of two live keys: %v", err)
	}
}

func TestWebhooksOfAnotherTimeAreStale(t *testing.T) {
	t.Parallel()
	c, body := listening(t, signing), recorded(t, "finalized")
	for age, want := range map[time.Duration]error{
		0: nil, 4 * time.Minute: nil, -4 * time.Minute: nil, 6 * time.Minute: provider.ErrStale, -6 * time.Minute: provider.ErrStale,
		400 * 24 * time.Hour: provider.ErrStale,
	} {
		heard, err := c.Hear(signed(signing, time.Now().Add(-age), body))
		if !errors.Is(err, want) || (err != nil && heard.Receipts != nil) {
			t.Errorf("%v old: %v, want %v", age, err, want)
		}
	}
}

// TestASignatureHasOneName makes sure that a replay cannot hide behind another spelling of the same signature.
func TestASignatureHasOneName(t *testing.T) {
	t.Parallel()
	c := listening(t, signing)
	call := signed(signing, time.Now(), recorded(t, "finalized"))
	first, err := c.Hear(call)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(call.Get("Telnyx-Signature-Ed25519"))
	// The last digit before "==" carries four bits that nobody reads.
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := bytes.IndexByte([]byte(digits), text[len(text)-3])
	text[len(text)-3] = digits[last^1]
	call.Header["Telnyx-Signature-Ed25519"] = []string{string(text)}
	if second, err := c.Hear(call); err == nil && second.Once != first.Once {
		t.Error("the same signature has two names")
	}
}

func TestSignedWebhooksThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	c := listening(t, signing)
	for _, body := range []string{
		``, `[]`, `{"data":{"event_type":"message.finalized"}}`,
		`{"data":{"event_type":"message.finalized","payload":{"id":"1","to":[]}}}`,
		`{"data":{"event_type":"message.received","payload":{"to":[{}]}}}`,
	} {
		if heard, err := c.Hear(signed(signing, time.Now(), []byte(body))); !errors.Is(err, provider.ErrMalformed) || heard.Receipts != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	other := []byte(`{"data":{"event_type":"messaging-profile.spend-limit-reached","payload":{}}}`)
	if heard, err := c.Hear(signed(signing, time.Now(), other)); err != nil || heard.Receipts != nil || heard.Inbound != nil {
		t.Errorf("what means nothing here: %v, %v", heard, err)
	}
}

// FuzzHear signs every input correctly, and then changes it: what is genuine is read without panic, what is
// not yields nothing.
func FuzzHear(f *testing.F) {
	for _, name := range []string{"finalized", "failed", "received"} {
		f.Add(recorded(f, name), []byte("{}"))
	}
	c := listening(f, other, signing)
	f.Fuzz(func(t *testing.T, body, changed []byte) {
		call := signed(signing, time.Now(), body)
		heard, err := c.Hear(call)
		if errors.Is(err, provider.ErrForged) || errors.Is(err, provider.ErrStale) {
			t.Errorf("a genuine webhook: %v", err)
		}
		if err != nil && (heard.Receipts != nil || heard.Inbound != nil) {
			t.Error("a refused webhook says something")
		}
		if call.Body = changed; !bytes.Equal(body, changed) {
			if heard, err := c.Hear(call); !errors.Is(err, provider.ErrForged) || heard.Receipts != nil || heard.Inbound != nil {
				t.Errorf("a forged webhook was heard: %v", err)
			}
		}
	})
}
