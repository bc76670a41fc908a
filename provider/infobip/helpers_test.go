package infobip

import (
	"maps"
	"testing"
	"time"

	"dispatcher/provider/infobip/infobiptest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

const (
	apiKey    = "infobip-api-k3y"
	secret    = "infobip-callback-s3cret"
	older     = "the older s3cret"
	key       = webtest.Key
	recipient = webtest.Recipient
	public    = "https://sms.example.com/receipts/infobip"
)

// now is when everything happens that is not on the wire.
var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

var files = webtest.Files{"key": apiKey + "\n", "secret": secret + "\n", "older": older}

// open makes a channel of settings, with a callback.
func open(t testing.TB, reach web.Config, callback string, more map[string]any) *Channel {
	t.Helper()
	values := map[string]any{
		"api_key_file": "key", "callback_secret_files": []any{"secret", "older"},
		"base_url": reach.BaseURL.String(), "allow_private": true, "timeout": "1m",
	}
	maps.Copy(values, more)
	cfg, err := ParseSettings(values, files.Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Web.TLS, cfg.Web.Dial = reach.TLS, reach.Dial
	return New(cfg)
}

// play brings up a carrier, a channel and an ear.
func play(
	t *testing.T, server infobiptest.Config, b webtest.Behaviour, more map[string]any,
) *webtest.Rig[*Channel] {
	t.Helper()
	return webtest.NewRig(t, func(callback string) webtest.Config {
		server.Key, server.Subscription = apiKey, callback
		return webtest.Config{Protocol: infobiptest.New(server), Behaviour: b}
	}, func(reach web.Config, callback string) *Channel { return open(t, reach, callback, more) })
}

// recorded reads a recorded answer.
func recorded(t testing.TB, name string) *web.Answer {
	t.Helper()
	return webtest.ReadAnswer(t, "testdata/answers/"+name+".http")
}
