package telnyx_test

import (
	"crypto/ed25519"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/provider"
	"dispatcher/provider/telnyx"
	"dispatcher/provider/telnyx/telnyxtest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret   = "KEY-conformance-secret"
	callback = "https://sms.example.org/receipts/acme"
	key      = "0123456789abcdef0123456789abcdef"
)

// signing and other are keys of webhooks.
var (
	signing = ed25519.NewKeyFromSeed([]byte("seed of the conformance key 0001"))
	other   = ed25519.NewKeyFromSeed([]byte("seed of the conformance key 0002"))
)

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// config is a channel for an API that begins at address.
func config(t testing.TB, address string) telnyx.Config {
	t.Helper()
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return telnyx.Config{
		Web:    web.Config{BaseURL: base, Timeout: time.Minute, AllowPrivate: true},
		APIKey: secret, PublicKeys: []ed25519.PublicKey{public(signing)}, Profile: "4000eba1-a0c0-4563-9925-b25e842a7cb6", From: "ACME",
	}
}

func shape() webtest.Shape { return telnyxtest.New(telnyxtest.Config{APIKey: secret, Key: signing}) }

// listening is a channel that asks for receipts, and verifies them with these keys.
func listening(t testing.TB, keys ...ed25519.PrivateKey) *telnyx.Channel {
	t.Helper()
	cfg := config(t, "https://api.telnyx.com/v2")
	cfg.Callback, cfg.PublicKeys = callback, nil
	for _, k := range keys {
		cfg.PublicKeys = append(cfg.PublicKeys, public(k))
	}
	c := telnyx.New(cfg)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

func submission() provider.Submission {
	return provider.Submission{ID: "m-1", Attempt: 1, Key: key, To: "+447700900123", Text: "Your code is 4711"}
}

// files is a readFile over a map.
func files(content map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if text, ok := content[name]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
}

// shown fails when an error shows what it must not.
func shown(t testing.TB, err error) {
	t.Helper()
	for _, hidden := range []string{secret, "7700900123", "4711"} {
		if err != nil && strings.Contains(err.Error(), hidden) {
			t.Errorf("the error shows %q", hidden)
		}
	}
}
