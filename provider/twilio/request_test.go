package twilio

import (
	"errors"
	"net/url"
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
		AccountSID: "AC00112233445566778899aabbccddeeff",
		KeySID:     "SK00112233445566778899aabbccddeeff", KeySecret: "s3cret",
		AuthTokens: []string{"t0ken"}, From: "ACME",
		Callback: "https://sms.example.org/receipts/acme",
	}
}

func compose(cfg Config, s *provider.Submission) (*web.Request, error) {
	return newAPI(cfg, func() time.Time { return noon }).Compose(s)
}

func TestRequestsAreWhatTheDocumentationAsksFor(t *testing.T) {
	t.Parallel()
	webtest.Requests[Config]{
		Files: "testdata/requests/*.txt", Config: usual(), Submission: webtest.Message(),
		Compose: compose,
		Cases: map[string]webtest.Unusual[Config]{
			"usual": {},
			"own_sender": {
				Submission: func(s *provider.Submission) { s.From = "+447700900999" },
			},
			"validity": {
				Submission: func(s *provider.Submission) { s.Validity = noon.Add(10 * time.Minute) },
			},
			"no_receipts": {Config: func(c *Config) { c.AuthTokens = nil }},
			"service": {
				Config: func(c *Config) { c.MessagingService = "MG00112233445566778899aabbccddeeff" },
			},
			"unicode": {
				Submission: func(s *provider.Submission) { s.Text = "Größe – “5” 🙂 & more=1" },
			},
			"callback_filter": {Config: func(c *Config) { c.Callback += "?tenant=a&b=1" }},
		},
	}.Run(t)
}

func TestValidityStaysWithinWhatTwilioTakes(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{
		-time.Hour: "1", 0: "1", 900 * time.Millisecond: "1",
		90*time.Second + 999*time.Millisecond: "90", 10 * time.Hour: "36000",
		72 * time.Hour: "36000",
	} {
		s := webtest.Message()
		s.Validity = noon.Add(left)
		r, err := compose(usual(), &s)
		if err != nil {
			t.Fatal(err)
		}
		form, err := url.ParseQuery(string(r.Body))
		if got := form.Get("ValidityPeriod"); err != nil || got != want {
			t.Errorf("%v left is sent as %q, want %q", left, got, want)
		}
	}
}

func TestWhatTwilioCannotTakeIsNotSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, text string
	}{
		"no text": {"ACME", ""}, "1601 characters": {"ACME", strings.Repeat("ä", 1601)},
		"no sender": {"", "hello"},
	} {
		cfg, s := usual(), webtest.Message()
		cfg.From, s.Text = c.from, c.text
		r, err := compose(cfg, &s)
		if err == nil || r != nil {
			t.Errorf("%s: composed, want an error", name)
		}
		if _, ends := errors.AsType[web.Unsendable](err); ends != (c.text == "") {
			t.Errorf("%s: rejected for every channel: %t", name, ends)
		}
	}
	s := webtest.Message()
	s.Text = strings.Repeat("ä", 1600)
	if _, err := compose(usual(), &s); err != nil {
		t.Errorf("1600 characters: %v", err)
	}
}
