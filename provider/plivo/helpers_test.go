package plivo_test

import (
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dispatcher/provider"
	"dispatcher/provider/plivo"
	"dispatcher/provider/plivo/plivotest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	account  = "MA0123456789ABCDEFGH"
	token    = "conformance-auth-token"
	callback = "https://sms.example.org/receipts/acme"
	key      = "0123456789abcdef0123456789abcdef"
)

// config is a channel for an API that begins at address.
func config(t testing.TB, address string) plivo.Config {
	t.Helper()
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return plivo.Config{
		Web:    web.Config{BaseURL: base, Timeout: time.Minute, AllowPrivate: true},
		AuthID: account, AuthTokens: []string{token}, From: "ACME",
	}
}

func shape() webtest.Shape { return plivotest.New(plivotest.Config{AuthID: account, AuthToken: token}) }

// listening is a channel that verifies callbacks with these tokens.
func listening(t testing.TB, tokens ...string) *plivo.Channel {
	t.Helper()
	cfg := config(t, "https://api.plivo.com/v1")
	cfg.Callback, cfg.AuthTokens = callback, tokens
	c := plivo.New(cfg)
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
	for _, hidden := range []string{token, "7700900123", "4711"} {
		if err != nil && strings.Contains(err.Error(), hidden) {
			t.Errorf("the error shows %q", hidden)
		}
	}
}
