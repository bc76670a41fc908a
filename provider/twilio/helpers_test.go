package twilio_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/twilio"
	"dispatcher/provider/twilio/twiliotest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

const (
	account  = "AC00112233445566778899aabbccddeeff"
	keySID   = "SK00112233445566778899aabbccddeeff"
	service  = "MG00112233445566778899aabbccddeeff"
	secret   = "conformance-key-secret"
	token    = "conformance-auth-token"
	callback = "https://sms.example.org/receipts/acme"
)

// config is a channel for an API that is reached like that.
func config(reach web.Config) twilio.Config {
	return twilio.Config{
		Web: reach, AccountSID: account, KeySID: keySID, KeySecret: secret,
		AuthTokens: []string{token}, From: "ACME",
	}
}

// open makes a channel with a callback.
func open(reach web.Config, callback string) *twilio.Channel {
	cfg := config(reach)
	cfg.Callback = callback
	return twilio.New(cfg)
}

func shape() webtest.Protocol {
	return twiliotest.New(
		twiliotest.Config{AccountSID: account, KeySID: keySID, KeySecret: secret, AuthToken: token})
}

// listening makes channels that ask for receipts, and verify them with some tokens.
func listening(t testing.TB) func(tokens ...string) provider.CallbackReader {
	return func(tokens ...string) provider.CallbackReader {
		t.Helper()
		cfg := config(webtest.LocalConfig(t, "https://api.twilio.com"))
		cfg.Callback, cfg.AuthTokens = callback, tokens
		c := twilio.New(cfg)
		t.Cleanup(func() { _ = c.Close(t.Context()) })
		return c
	}
}
