package telnyx_test

import (
	"crypto/ed25519"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/telnyx"
	"dispatcher/provider/telnyx/telnyxtest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

const (
	secret   = "KEY-conformance-secret"
	callback = "https://sms.example.org/receipts/acme"
)

// signing and other are keys of webhooks.
var (
	signing = ed25519.NewKeyFromSeed([]byte("seed of the conformance key 0001"))
	other   = ed25519.NewKeyFromSeed([]byte("seed of the conformance key 0002"))
)

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// config is a channel for an API that is reached like that.
func config(reach web.Config) telnyx.Config {
	return telnyx.Config{
		Web: reach, APIKey: secret, PublicKeys: []ed25519.PublicKey{public(signing)},
		Profile: "4000eba1-a0c0-4563-9925-b25e842a7cb6", From: "ACME",
	}
}

// open makes a channel with a callback.
func open(reach web.Config, callback string) *telnyx.Channel {
	cfg := config(reach)
	cfg.Callback = callback
	return telnyx.New(cfg)
}

func shape() webtest.Protocol {
	return telnyxtest.New(
		telnyxtest.Config{APIKey: secret, Key: signing})
}

// listening makes channels that ask for receipts, and verify them with some keys.
func listening(t testing.TB) func(keys ...ed25519.PrivateKey) provider.CallbackReader {
	return func(keys ...ed25519.PrivateKey) provider.CallbackReader {
		t.Helper()
		cfg := config(webtest.LocalConfig(t, "https://api.telnyx.com/v2"))
		cfg.Callback, cfg.PublicKeys = callback, nil
		for _, k := range keys {
			cfg.PublicKeys = append(cfg.PublicKeys, public(k))
		}
		c := telnyx.New(cfg)
		t.Cleanup(func() { _ = c.Close(t.Context()) })
		return c
	}
}
