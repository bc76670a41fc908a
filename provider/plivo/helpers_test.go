package plivo_test

import (
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/plivo"
	"dispatcher/provider/plivo/plivotest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

const (
	account  = "MA0123456789ABCDEFGH"
	token    = "conformance-auth-token"
	callback = "https://sms.example.org/receipts/acme"
)

// config is a channel for an API that is reached like that.
func config(reach web.Config) plivo.Config {
	return plivo.Config{Web: reach, AuthID: account, AuthTokens: []string{token}, From: "ACME"}
}

// open makes a channel with a callback.
func open(reach web.Config, callback string) *plivo.Channel {
	cfg := config(reach)
	cfg.Callback = callback
	return plivo.New(cfg)
}

func shape() webtest.Protocol {
	return plivotest.New(plivotest.Config{AuthID: account, AuthToken: token})
}

// listening makes channels that verify callbacks with some tokens.
func listening(t testing.TB) func(tokens ...string) provider.CallbackReader {
	return func(tokens ...string) provider.CallbackReader {
		t.Helper()
		cfg := config(webtest.LocalConfig(t, "https://api.plivo.com/v1"))
		cfg.Callback, cfg.AuthTokens = callback, tokens
		c := plivo.New(cfg)
		t.Cleanup(func() { _ = c.Close(t.Context()) })
		return c
	}
}
