package httpapi

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Some gateways sign with it; HMAC-SHA1 is not broken.
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Ways to verify callbacks.
const (
	bySecret      = "secret"
	byBasic       = "basic"
	byHMAC        = "hmac"
	byCertificate = "certificate"
)

// verification describes how callbacks of a gateway are verified.
type verification struct {
	by      string
	secrets []string // live ones; the first is the newest
	at      *place   // of the secret, or of the signature; in the query or a header
	user    string   // of basic authentication

	hash   func() hash.Hash
	decode func(string) ([]byte, error)
	prefix string   // before the signature
	signed template // the signed text
	time   *place
	late   time.Duration // how long after its time a callback is accepted
}

var (
	hashes = map[string]func() hash.Hash{
		"sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New,
	}
	encodings = map[string]func(string) ([]byte,
		error){"hex": hex.DecodeString, "base64": base64.StdEncoding.DecodeString}
	// inSigned are the placeholders of the signed text.
	inSigned = []string{"time", "method", "url", "body"}
)

// first is the secret in callback URLs.
func (v *verification) first() string {
	if v == nil || len(v.secrets) == 0 {
		return ""
	}
	return v.secrets[0]
}

// check verifies the sender; once is the ReplayID, if the scheme has one.
func (v *verification) check(c *provider.Callback, d *document) (once string, err error) {
	switch {
	case v == nil:
		return "", fmt.Errorf("nobody may call back: %w", provider.ErrForged)
	case v.by == byCertificate:
		if !c.Certificate {
			return "", fmt.Errorf("no client certificate: %w", provider.ErrForged)
		}
		return "", nil
	case v.by == byHMAC:
		return v.checkHMAC(c, d)
	}
	given, _ := v.at.find(d)
	genuine := false
	for _, secret := range v.secrets {
		want := secret
		if v.by == byBasic {
			want = basic(v.user, secret)
		}
		genuine = web.SameSecret(given, want) || genuine
	}
	if !genuine {
		return "", fmt.Errorf("wrong secret: %w", provider.ErrForged)
	}
	return "", nil
}

// basic is the value of the Authorization field (RFC 7617).
func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func (v *verification) checkHMAC(c *provider.Callback, d *document) (string, error) {
	text, _ := v.at.find(d)
	text, hasPrefix := strings.CutPrefix(text, v.prefix)
	given, err := v.decode(text)
	if !hasPrefix || err != nil || len(given) == 0 {
		return "", fmt.Errorf("no signature: %w", provider.ErrForged)
	}
	stamp, _ := v.time.find(d)
	signed, _ := v.signed.expand(func(p part) string {
		switch p.name {
		case "time":
			return stamp
		case "method":
			return c.Method
		case "url":
			return c.URL
		}
		return string(c.Body)
	}, nil)
	if !web.SignedByAny(v.secrets, given, func(secret string) []byte {
		mac := hmac.New(v.hash, []byte(secret))
		mac.Write([]byte(signed))
		return mac.Sum(nil)
	}) {
		return "", fmt.Errorf("wrong signature: %w", provider.ErrForged)
	}
	if err := v.unambiguous(c, stamp); err != nil {
		return "", err
	}
	if v.time == nil {
		return "", nil
	}
	if err := fresh(stamp, c.At, v.late); err != nil {
		return "", err
	}
	return hex.EncodeToString(given), nil
}

var (
	// timePattern has seconds or milliseconds since 1970, until the year 2286.
	timePattern = regexp.MustCompile(`^[0-9]{10}(?:[0-9]{3})?$`)
	// addressPattern has the characters of a URL (RFC 3986) and no other.
	addressPattern = regexp.MustCompile(`^[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*$`)
)

// unambiguous checks that the signed text can be cut into its parts in one way only, whatever
// separates them: a time has digits of one length, an address has no character that begins or ends
// JSON, and a body directly after a time does not begin with a digit.
func (v *verification) unambiguous(c *provider.Callback, stamp string) error {
	switch {
	case v.time != nil && !timePattern.MatchString(stamp):
		return fmt.Errorf("its time is not a number of seconds or milliseconds: %w",
			provider.ErrMalformed)
	case v.signed.has("url") && !addressPattern.MatchString(c.URL):
		return fmt.Errorf("its address has characters that none has: %w", provider.ErrMalformed)
	case v.signed.follows("time", "body") && len(c.Body) > 0 && c.Body[0] >= '0' &&
		c.Body[0] <= '9':
		return fmt.Errorf("its body could be the end of its time: %w", provider.ErrMalformed)
	}
	return nil
}

// fresh reads a time in seconds or milliseconds since 1970.
func fresh(stamp string, now time.Time, late time.Duration) error {
	const milliseconds = 100_000_000_000 // as seconds, the year 5138
	n, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("its time is not a number: %w", provider.ErrMalformed)
	}
	at := time.Unix(n, 0)
	if n > milliseconds {
		at = time.UnixMilli(n)
	}
	return web.CheckAge(at, now, late)
}
