package twilio_test

import (
	"testing"

	"go.uber.org/goleak"

	"dispatcher/provider"
	"dispatcher/provider/twilio"
	"dispatcher/provider/twilio/twiliotest"
	"dispatcher/provider/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	account  = "AC00112233445566778899aabbccddeeff"
	keySID   = "SK00112233445566778899aabbccddeeff"
	service  = "MG00112233445566778899aabbccddeeff"
	secret   = "conformance-key-secret"
	token    = "conformance-auth-token"
	callback = "https://sms.example.org/receipts/acme"
)

// config is a channel for an API that begins at address.
func config(t testing.TB, address string) twilio.Config {
	t.Helper()
	return twilio.Config{
		Web: webtest.Reach(t, address), AccountSID: account, KeySID: keySID, KeySecret: secret, AuthTokens: []string{token}, From: "ACME",
	}
}

func shape() webtest.Shape {
	return twiliotest.New(twiliotest.Config{AccountSID: account, KeySID: keySID, KeySecret: secret, AuthToken: token})
}

// listening makes channels that ask for receipts, and verify them with some tokens.
func listening(t testing.TB) func(tokens ...string) provider.Listener {
	return func(tokens ...string) provider.Listener {
		t.Helper()
		cfg := config(t, "https://api.twilio.com")
		cfg.Callback, cfg.AuthTokens = callback, tokens
		c := twilio.New(cfg)
		t.Cleanup(func() { _ = c.Close(t.Context()) })
		return c
	}
}
