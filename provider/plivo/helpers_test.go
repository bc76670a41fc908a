package plivo_test

import (
	"testing"

	"go.uber.org/goleak"

	"dispatcher/provider"
	"dispatcher/provider/plivo"
	"dispatcher/provider/plivo/plivotest"
	"dispatcher/provider/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	account  = "MA0123456789ABCDEFGH"
	token    = "conformance-auth-token"
	callback = "https://sms.example.org/receipts/acme"
)

// config is a channel for an API that begins at address.
func config(t testing.TB, address string) plivo.Config {
	t.Helper()
	return plivo.Config{Web: webtest.Reach(t, address), AuthID: account, AuthTokens: []string{token}, From: "ACME"}
}

func shape() webtest.Shape { return plivotest.New(plivotest.Config{AuthID: account, AuthToken: token}) }

// listening makes channels that verify callbacks with some tokens.
func listening(t testing.TB) func(tokens ...string) provider.Listener {
	return func(tokens ...string) provider.Listener {
		t.Helper()
		cfg := config(t, "https://api.plivo.com/v1")
		cfg.Callback, cfg.AuthTokens = callback, tokens
		c := plivo.New(cfg)
		t.Cleanup(func() { _ = c.Close(t.Context()) })
		return c
	}
}
