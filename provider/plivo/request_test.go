package plivo

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func usual() Config {
	return Config{
		AuthID: "MA0123456789ABCDEFGH", AuthTokens: []string{"t0ken", "old"}, From: "+447700900999",
		Callback: "https://sms.example.org/receipts/acme",
	}
}

func compose(cfg Config, s *provider.Submission) (*web.Request, error) {
	return newAPI(cfg, func() time.Time { return noon }).Compose(s)
}

func TestRequestsAreWhatTheDocumentationAsksFor(t *testing.T) {
	t.Parallel()
	powerpack := func(c *Config) { c.From, c.Powerpack = "", "p-1" }
	webtest.Requests[Config]{
		Files: "testdata/requests/*.txt", Config: usual(), Submission: webtest.Message(),
		Compose: compose,
		Cases: map[string]webtest.Unusual[Config]{
			"usual": {},
			"own_sender": {
				Config: powerpack, Submission: func(s *provider.Submission) { s.From = "ACME" },
			},
			"powerpack": {Config: powerpack},
			"validity": {
				Submission: func(s *provider.Submission) { s.Validity = noon.Add(10 * time.Minute) },
			},
			"no_receipts": {Config: func(c *Config) { c.Callback, c.Log = "", "false" }},
			"unicode": {
				Submission: func(s *provider.Submission) { s.Text = "Größe – “5” 🙂 & <more>" },
			},
		},
	}.Run(t)
}

func TestValidityStaysWithinWhatPlivoTakes(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]int{
		-time.Hour: 5, 0: 5, 4 * time.Second: 5, 90*time.Second + 999*time.Millisecond: 90,
		3 * time.Hour: 10799, 72 * time.Hour: 10799,
	} {
		s := webtest.Message()
		s.Validity = noon.Add(left)
		r, err := compose(usual(), &s)
		if err != nil {
			t.Fatal(err)
		}
		var m outbound
		if err := json.Unmarshal(r.Body, &m); err != nil || m.Expiry != want {
			t.Errorf("%v left is sent as %d, want %d", left, m.Expiry, want)
		}
	}
}

func TestWhatPlivoCannotTakeIsNotSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, text string
		fits       bool
	}{
		"no text": {"ACME", "", false}, "no sender": {"", "hello", false},
		"1600 septets": {"ACME", strings.Repeat("a", 1600), true},
		"1601 septets": {"ACME", strings.Repeat("a", 1599) + "€", false},
		"737 units":    {"ACME", strings.Repeat("Ж", 737), true},
		"738 units":    {"ACME", strings.Repeat("Ж", 736) + "🙂", false},
	} {
		cfg, s := usual(), webtest.Message()
		cfg.From, s.Text = c.from, c.text
		_, err := compose(cfg, &s)
		if (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
		if _, ends := errors.AsType[web.Unsendable](err); ends != (c.text == "") {
			t.Errorf("%s: rejected for every channel: %t", name, ends)
		}
	}
}
