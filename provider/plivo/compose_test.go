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

func composer(adjust func(*Config)) *api {
	cfg := Config{AuthID: "MA0123456789ABCDEFGH", AuthTokens: []string{"t0ken", "old"}, From: "+447700900999", Callback: "https://sms.example.org/receipts/acme"}
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
		"usual":       {func(*Config) {}, func(*provider.Submission) {}},
		"own_sender":  {func(c *Config) { c.From, c.Powerpack = "", "p-1" }, func(s *provider.Submission) { s.From = "ACME" }},
		"powerpack":   {func(c *Config) { c.From, c.Powerpack = "", "p-1" }, func(*provider.Submission) {}},
		"validity":    {func(*Config) {}, func(s *provider.Submission) { s.Validity = noon.Add(10 * time.Minute) }},
		"no_receipts": {func(c *Config) { c.Callback, c.Log = "", "false" }, func(*provider.Submission) {}},
		"unicode":     {func(*Config) {}, func(s *provider.Submission) { s.Text = "Größe – “5” 🙂 & <more>" }},
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

func TestValidityStaysWithinWhatPlivoTakes(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]int{
		-time.Hour: 5, 0: 5, 4 * time.Second: 5, 90*time.Second + 999*time.Millisecond: 90, 3 * time.Hour: 10799, 72 * time.Hour: 10799,
	} {
		s := message()
		s.Validity = noon.Add(left)
		r, err := composer(func(*Config) {}).Compose(&s)
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
		"1600 septets": {"ACME", strings.Repeat("a", 1600), true}, "1601 septets": {"ACME", strings.Repeat("a", 1599) + "€", false},
		"737 units": {"ACME", strings.Repeat("Ж", 737), true}, "738 units": {"ACME", strings.Repeat("Ж", 736) + "🙂", false},
	} {
		s := message()
		s.Text = c.text
		_, err := composer(func(cfg *Config) { cfg.From = c.from }).Compose(&s)
		if (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
		if _, ends := errors.AsType[web.Unsendable](err); ends != (c.text == "") {
			t.Errorf("%s: it ends the message: %t", name, ends)
		}
	}
}
