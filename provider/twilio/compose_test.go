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

func composer(adjust func(*Config)) *api {
	cfg := Config{
		AccountSID: "AC00112233445566778899aabbccddeeff", KeySID: "SK00112233445566778899aabbccddeeff", KeySecret: "s3cret",
		AuthTokens: []string{"t0ken"}, From: "ACME", Callback: "https://sms.example.org/receipts/acme",
	}
	adjust(&cfg)
	return newAPI(cfg, func() time.Time { return noon })
}

func message() provider.Submission {
	return provider.Submission{ID: "m-1", Key: "0123456789abcdef0123456789abcdef", To: "+447700900123", Text: "Your code is 4711"}
}

func TestRequestsAreWhatTheDocumentationAsksFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		adjust func(*Config)
		edit   func(*provider.Submission)
	}{
		"usual":           {func(*Config) {}, func(*provider.Submission) {}},
		"own_sender":      {func(*Config) {}, func(s *provider.Submission) { s.From = "+447700900999" }},
		"validity":        {func(*Config) {}, func(s *provider.Submission) { s.Validity = noon.Add(10 * time.Minute) }},
		"no_receipts":     {func(c *Config) { c.AuthTokens = nil }, func(*provider.Submission) {}},
		"service":         {func(c *Config) { c.MessagingService = "MG00112233445566778899aabbccddeeff" }, func(*provider.Submission) {}},
		"unicode":         {func(*Config) {}, func(s *provider.Submission) { s.Text = "Größe – “5” 🙂 & more=1" }},
		"callback_filter": {func(c *Config) { c.Callback += "?tenant=a&b=1" }, func(*provider.Submission) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := message()
			c.edit(&s)
			r, err := composer(c.adjust).Compose(&s)
			if err != nil {
				t.Fatal(err)
			}
			webtest.Golden(t, "testdata/requests/"+name+".txt", r)
		})
	}
}

func TestValidityStaysWithinWhatTwilioTakes(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{
		-time.Hour: "1", 0: "1", 900 * time.Millisecond: "1", 90*time.Second + 999*time.Millisecond: "90", 10 * time.Hour: "36000", 72 * time.Hour: "36000",
	} {
		s := message()
		s.Validity = noon.Add(left)
		r, err := composer(func(*Config) {}).Compose(&s)
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
		"no text": {"ACME", ""}, "1601 characters": {"ACME", strings.Repeat("ä", 1601)}, "no sender": {"", "hello"},
	} {
		s := message()
		s.Text = c.text
		r, err := composer(func(cfg *Config) { cfg.From = c.from }).Compose(&s)
		if err == nil || r != nil {
			t.Errorf("%s: composed", name)
		}
		if _, ends := errors.AsType[web.Unsendable](err); ends != (c.text == "") {
			t.Errorf("%s: it ends the message: %t", name, ends)
		}
	}
	s := message()
	s.Text = strings.Repeat("ä", 1600)
	if _, err := composer(func(*Config) {}).Compose(&s); err != nil {
		t.Errorf("1600 characters: %v", err)
	}
}
