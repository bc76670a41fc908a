package telnyx

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"dispatcher/provider"
	"dispatcher/provider/sms"
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

// documented lists the characters that Telnyx documents for GSM-7, besides letters and digits. The
// escaped ones take two septets.
const documented = "\n\r !\"#$%&'()*+,-./:;<=>?@_£¥èéùìòØøÅåÆæßÉ¡ÄÖÑÜ¿äöñüà" + "~^|\\{}[]"

func TestTextsAreMeasuredInTheGSM7ThatTelnyxHas(t *testing.T) {
	t.Parallel()
	letter := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	}
	for r := range rune(0x2100) {
		want := sms.UCS2
		if letter(r) || strings.ContainsRune(documented, r) {
			want = sms.GSM7
		}
		if got := measure(string(r)).Alphabet; got != want {
			t.Errorf("%q (%U) is sent in %v, want %v", r, r, got, want)
		}
	}
}

func TestSegmentsAreThoseThatTelnyxBills(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		strings.Repeat("x", 160):       1,
		strings.Repeat("x", 161):       2,
		strings.Repeat("[", 81):        2,
		strings.Repeat("x", 69) + "€":  1,
		strings.Repeat("x", 70) + "€":  2,
		strings.Repeat("x", 133) + "€": 2,
		strings.Repeat("x", 134) + "€": 3,
		strings.Repeat("🙂", 35):        1,
		strings.Repeat("🙂", 35) + "€":  2,
		"":                             1,
	} {
		if got := Segments(text); got != want {
			t.Errorf("%.5q of %d bytes has %d segments, want %d", text, len(text), got, want)
		}
	}
}
