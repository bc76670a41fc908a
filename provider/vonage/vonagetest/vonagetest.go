// Package vonagetest is the server side of Vonage's Messages API and SMS API for scripted carriers:
// it reads submissions as strictly as Vonage documents them, answers in the same formats and signs
// callbacks.
// It is written from the documentation, makes its JWTs itself, and shares no code with the adapter.
package vonagetest

import (
	"crypto/rsa"
	"net/url"
	"regexp"
	"strings"

	"dispatcher/provider/web/webtest"
)

// Config is the account that the server knows.
type Config struct {
	// SMS serves the SMS API instead of the Messages API.
	SMS               bool
	APIKey, APISecret string
	// Application and PublicKey, if set, make the Messages API demand the application's JWT.
	Application string
	PublicKey   *rsa.PublicKey
	// Secret signs callbacks; empty leaves them unsigned.
	Secret string
}

// New returns the protocol of the API that the configuration names.
func New(cfg Config) webtest.Protocol {
	if cfg.SMS {
		return smsShape{cfg}
	}
	return messagesShape{cfg}
}

// number is a recipient: international, without a plus.
var number = regexp.MustCompile(`^[0-9]{7,15}$`)

// isAddress reports whether the text is a valid webhook address.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func bare(number string) string { return strings.TrimPrefix(number, "+") }
