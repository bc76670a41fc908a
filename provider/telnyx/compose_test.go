package telnyx

import (
	"crypto/ed25519"
	"errors"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/web"
	"dispatcher/provider/web/webtest"
)

func usual() Config {
	return Config{
		APIKey: "KEY0123", PublicKeys: []ed25519.PublicKey{make([]byte, ed25519.PublicKeySize)},
		From:     "ACME",
		Profile:  "4000eba1-a0c0-4563-9925-b25e842a7cb6",
		Callback: "https://sms.example.org/receipts/acme",
	}
}

func compose(
	cfg Config, s *provider.Submission,
) (*web.Request, error) {
	return newAPI(cfg).Compose(s)
}

func TestRequestsAreWhatTheDocumentationAsksFor(t *testing.T) {
	t.Parallel()
	webtest.Requests[Config]{
		Files: "testdata/requests/*.txt", Config: usual(), Submission: webtest.Message(),
		Compose: compose,
		Cases: map[string]webtest.Unusual[Config]{
			"usual":       {},
			"own_sender":  {Submission: func(s *provider.Submission) { s.From = "+447700900999" }},
			"pool":        {Config: func(c *Config) { c.From = "" }},
			"no_receipts": {Config: func(c *Config) { c.PublicKeys = nil }},
			"euro":        {Submission: func(s *provider.Submission) { s.Text = "You owe 5 €" }},
			"unicode": {
				Submission: func(s *provider.Submission) { s.Text = "Größe – “5” 🙂 & <more>" },
			},
		},
	}.Run(t)
}

func TestWhatTelnyxCannotTakeIsNotSent(t *testing.T) {
	t.Parallel()
	cfg, s := usual(), webtest.Message()
	cfg.From, cfg.Profile = "", ""
	var ends web.Unsendable
	if _, err := compose(cfg, &s); err == nil || errors.As(err, &ends) {
		t.Errorf("without a sender: %v", err)
	}
	s.Text = ""
	if _, err := compose(usual(), &s); !errors.As(err, &ends) {
		t.Errorf("without a text: %v", err)
	}
}
