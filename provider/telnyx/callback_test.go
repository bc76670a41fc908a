package telnyx

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

	"dispatcher/provider"
	"dispatcher/provider/telnyx/telnyxtest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

// signed returns a webhook that was signed at a given time and arrives now.
func signed(k ed25519.PrivateKey, at time.Time, body []byte) *provider.Callback {
	c := &provider.Callback{
		Method: "POST", URL: web.WithKey(callback, "ffffffffffffffffffffffffffffffff"), Body: body,
		At: time.Now(), Header: map[string][]string{},
	}
	for name, value := range telnyxtest.Sign(k, at, body) {
		c.Header[textproto.CanonicalMIMEHeaderKey(name)] = []string{value}
	}
	return c
}

// genuine returns a webhook that was signed now.
func genuine(body string) *provider.Callback { return signed(signing, time.Now(), []byte(body)) }

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile("testdata/callbacks/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestRecordedWebhooksAreRead also shows that the key comes from the signed content: the called URL
// names another one.
func TestRecordedWebhooksAreRead(t *testing.T) {
	t.Parallel()
	c := channelWith(t)(signing)
	for name, want := range map[string]provider.CallbackContent{
		"finalized": {Receipts: []provider.Receipt{{
			Reference: "834f3d53-8a3c-4aa0-a733-7f2d682a72df", Key: webtest.Key,
			State: provider.Delivered, Code: "delivered",
		}}},
		"failed": {Receipts: []provider.Receipt{{
			Reference: "834f3d53-8a3c-4aa0-a733-7f2d682a72df", State: provider.Undelivered,
			Cause: provider.Spam, Code: "delivery_failed/40002",
		}}},
		"received": {Inbound: []provider.Inbound{{
			Reference: "84cca175-9755-4859-b67f-4730d7f58aa3", From: "+447700900123",
			To: "+447700900999", Text: "STOP",
			SentAt: time.Date(2026, 3, 1, 12, 0, 14, 148_000_000, time.UTC),
		}}},
	} {
		call := genuine(string(recorded(t, name)))
		want.ReplayID = call.Get("Telnyx-Signature-Ed25519")
		webtest.CheckContent(t, c, call, want)
	}
}

func TestStatusesMeanWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	webtest.CheckStatuses(t, channelWith(t)(signing), provider.Receipt{Reference: "1"},
		func(status, errors string) *provider.Callback {
			return genuine(
				fmt.Sprintf(
					`{"data":{"event_type":"message.finalized","payload":{"id":"1","to":[{"status":%q}],"errors":[%s]}}}`, status, errors))
		}, map[[2]string]provider.Receipt{
			{"queued", ""}:  {State: provider.Pending, Code: "queued"},
			{"sending", ""}: {State: provider.Pending, Code: "sending"},
			{"sent", ""}:    {State: provider.Pending, Code: "sent"},
			{"delivery_unconfirmed", `{"code":"40008"}`}: {
				State: provider.Pending, Code: "delivery_unconfirmed/40008",
			},
			{"something new", ""}: {State: provider.Pending, Code: "other"},
			{"delivered", ""}:     {State: provider.Delivered, Code: "delivered"},
			{"expired", ""}: {
				State: provider.Undelivered, Cause: provider.Expired, Code: "expired",
			},
			{"cancelled", ""}: {
				State: provider.Undelivered, Cause: provider.Deleted, Code: "cancelled",
			},
			{"sending_failed", `{"code":40014}`}: {
				State: provider.Undelivered, Cause: provider.Expired, Code: "sending_failed/40014",
			},
			{"sending_failed", `{"code":"40300"}`}: {
				State: provider.Undelivered, Cause: provider.OptedOut, Code: "sending_failed/40300",
			},
			{"delivery_failed", `{"code":"40001"},{"code":"40002"}`}: {
				State: provider.Undelivered, Cause: provider.NotMobile,
				Code: "delivery_failed/40001",
			},
			{"delivery_failed", `{"code":"49999"}`}: {
				State: provider.Undelivered, Code: "delivery_failed/49999",
			},
			{"delivery_failed", `{"code":"+447700900123"}`}: {
				State: provider.Undelivered, Code: "delivery_failed/other",
			},
			{"expired", `{"code":"40008"}`}: {
				State: provider.Undelivered, Cause: provider.Expired, Code: "expired/40008",
			},
		})
}

func TestForgedWebhooksSayNothing(t *testing.T) {
	t.Parallel()
	body := recorded(t, "failed")
	webtest.CheckTampered(t, channelWith(t)(signing),
		func() *provider.Callback { return genuine(string(body)) }, webtest.Changes{
			"other body": func(c *provider.Callback) {
				c.Body = bytes.Replace(c.Body, []byte("delivery_failed"), []byte("delivered"), 1)
			},
			"other time": func(c *provider.Callback) {
				c.Header["Telnyx-Timestamp"] = []string{
					fmt.Sprint(time.Now().Unix() + 1),
				}
			},
			"no time": func(c *provider.Callback) { delete(c.Header, "Telnyx-Timestamp") },
			"no signature": func(c *provider.Callback) {
				delete(c.Header, "Telnyx-Signature-Ed25519")
			},
			"signature of zeros": func(c *provider.Callback) {
				c.Header["Telnyx-Signature-Ed25519"] = []string{
					base64.StdEncoding.EncodeToString(make([]byte, 64)),
				}
			},
			"short signature": func(c *provider.Callback) {
				c.Header["Telnyx-Signature-Ed25519"][0] = "AAAA"
			},
			"another key": func(c *provider.Callback) { *c = *signed(other, time.Now(), body) },
		})
	webtest.CheckSecrets(t, channelWith(t), genuine(string(body)), signing, other)
}

func TestWebhooksOfAnotherTimeAreStale(t *testing.T) {
	t.Parallel()
	c, body := channelWith(t)(signing), recorded(t, "finalized")
	aged := func(age time.Duration) *provider.Callback {
		return signed(signing, time.Now().Add(-age), body)
	}
	webtest.CheckAgeLimits(t, c, aged, 5*time.Minute, 5*time.Minute)
	webtest.CheckRefused(t, c, provider.ErrStale,
		map[string]*provider.Callback{"of last year": aged(400 * 24 * time.Hour)})
}

func TestWebhooksHaveReplayIDs(t *testing.T) {
	t.Parallel()
	webtest.CheckReplayID(t, channelWith(t)(signing), genuine(string(recorded(t, "finalized"))),
		genuine(string(recorded(t, "failed"))))
}

// TestASignatureHasOneReplayID: a replay must not pass with another encoding of the same signature.
func TestASignatureHasOneReplayID(t *testing.T) {
	t.Parallel()
	c := channelWith(t)(signing)
	call := genuine(string(recorded(t, "finalized")))
	first, err := c.ReadCallback(call)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(call.Get("Telnyx-Signature-Ed25519"))
	// Decoders ignore four bits of the last digit before "==".
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := bytes.IndexByte([]byte(digits), text[len(text)-3])
	text[len(text)-3] = digits[last^1]
	call.Header["Telnyx-Signature-Ed25519"] = []string{string(text)}
	if second, err := c.ReadCallback(call); err == nil && second.ReplayID != first.ReplayID {
		t.Error("the same signature has two ReplayIDs")
	}
}

func TestSignedWebhooksThatCannotBeReadAreMalformed(t *testing.T) {
	t.Parallel()
	c := channelWith(t)(signing)
	webtest.CheckRefused(t, c, provider.ErrMalformed, webtest.Bodies(
		genuine, ``, `[]`, `{"data":{"event_type":"message.finalized"}}`,
		`{"data":{"event_type":"message.finalized","payload":{"id":"1","to":[]}}}`,
		`{"data":{"event_type":"message.received","payload":{"to":[{}]}}}`,
	))
	webtest.CheckIgnored(t, c,
		webtest.Bodies(genuine,
			`{"data":{"event_type":"messaging-profile.spend-limit-reached","payload":{}}}`))
}

// FuzzReadCallback signs every input, and then changes it. Reading the signed input does not panic;
// the changed one yields nothing.
func FuzzReadCallback(f *testing.F) {
	for _, name := range []string{"finalized", "failed", "received"} {
		f.Add(recorded(f, name), []byte("{}"))
	}
	c := channelWith(f)(other, signing)
	f.Fuzz(func(t *testing.T, body, changed []byte) {
		call := signed(signing, time.Now(), body)
		content, err := c.ReadCallback(call)
		if errors.Is(err, provider.ErrForged) || errors.Is(err, provider.ErrStale) {
			t.Errorf("a genuine webhook: %v", err)
		}
		webtest.CheckBounded(t, content, err)
		if call.Body = changed; !bytes.Equal(body, changed) {
			webtest.CheckForged(t, c, call)
		}
	})
}
