package sinch

import (
	"maps"
	"testing"
	"time"

	"dispatcher/provider/sinch/sinchtest"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

const (
	plan      = "jd63jf88477ll123ab4567cd89012ef3"
	token     = "sinch-t0ken"
	secret    = "sinch-callback-s3cret"
	public    = "https://sms.example.com/receipts/sinch"
	key       = webtest.Key
	recipient = webtest.Recipient
)

// now is when everything happens that is not on the wire.
var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

var files = webtest.Files{
	"token": token + "\n", "secret": secret + "\n", "older": "the older s3cret", "empty": "\n",
}

// open makes a channel of settings, with a callback.
func open(t testing.TB, reach web.Config, callback string, more map[string]any) *Channel {
	t.Helper()
	values := map[string]any{
		"service_plan_id": plan, "token_file": "token",
		"callback_secret_files": []any{"older", "secret"},
		"base_url":              reach.BaseURL.String(), "allow_private": true, "timeout": "1m",
	}
	maps.Copy(values, more)
	cfg, err := ParseSettings(values, files.Environment(callback))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Web.TLS, cfg.Web.Dial = reach.TLS, reach.Dial
	return New(cfg)
}

func shape() webtest.Protocol {
	return sinchtest.New(sinchtest.Config{Plan: plan, Token: token, Secret: secret})
}

// play brings up a carrier, a channel and an ear.
func play(t *testing.T, b webtest.Behaviour, more map[string]any) *webtest.Rig[*Channel] {
	t.Helper()
	return webtest.NewRig(t, func(string) webtest.Config {
		return webtest.Config{Protocol: shape(), Behaviour: b}
	}, func(reach web.Config, callback string) *Channel { return open(t, reach, callback, more) })
}

// recorded reads a recorded answer.
func recorded(t testing.TB, name string) *web.Answer {
	t.Helper()
	return webtest.ReadAnswer(t, "testdata/answers/"+name+".http")
}
