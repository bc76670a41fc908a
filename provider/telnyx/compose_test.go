package telnyx

import (
	"crypto/ed25519"
	"errors"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func composer(adjust func(*Config)) *api {
	cfg := Config{
		APIKey: "KEY0123", PublicKeys: []ed25519.PublicKey{make([]byte, ed25519.PublicKeySize)}, From: "ACME",
		Profile: "4000eba1-a0c0-4563-9925-b25e842a7cb6", Callback: "https://sms.example.org/receipts/acme",
	}
	adjust(&cfg)
	return newAPI(cfg)
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
		"own_sender":  {func(*Config) {}, func(s *provider.Submission) { s.From = "+447700900999" }},
		"pool":        {func(c *Config) { c.From = "" }, func(*provider.Submission) {}},
		"no_receipts": {func(c *Config) { c.PublicKeys = nil }, func(*provider.Submission) {}},
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

func TestWhatTelnyxCannotTakeIsNotSent(t *testing.T) {
	t.Parallel()
	s := message()
	var ends web.Unsendable
	if _, err := composer(func(c *Config) { c.From, c.Profile = "", "" }).Compose(&s); err == nil || errors.As(err, &ends) {
		t.Errorf("without a sender: %v", err)
	}
	s.Text = ""
	if _, err := composer(func(*Config) {}).Compose(&s); !errors.As(err, &ends) {
		t.Errorf("without a text: %v", err)
	}
}
