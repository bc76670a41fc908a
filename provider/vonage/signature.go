package vonage

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// late is how long after its time a callback is accepted. Vonage retries for a day and does not say
// whether it signs again.
var late = web.RetryTolerance(24 * time.Hour)

// leeway is the tolerated clock difference for the validity stated in a token.
const leeway = time.Minute

// claims is what the token holds in callbacks of the Messages API.
type claims struct {
	jwt.RegisteredClaims
	PayloadHash string `json:"payload_hash"`
	APIKey      string `json:"api_key"`
	Application string `json:"application_id"`
}

// verifyToken checks the sender and returns the id of the token: a JWT (HS256) under a signature
// secret whose claims name the hash of the body, the account and the time. The hash is required, so
// that the body is protected even if TLS ends at a proxy.
func (c *Config) verifyToken(callback *provider.Callback) (once string, err error) {
	token, ok := strings.CutPrefix(callback.Get("Authorization"), "Bearer ")
	if !ok || len(c.Secrets) == 0 {
		return "", fmt.Errorf("no token: %w", provider.ErrForged)
	}
	keys := jwt.VerificationKeySet{}
	for _, secret := range c.Secrets {
		keys.Keys = append(keys.Keys, []byte(secret))
	}
	var parsed claims
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation())
	if _, err := parser.ParseWithClaims(token, &parsed,
		func(*jwt.Token) (any, error) { return keys, nil }); err != nil {
		// the library's text shows claims
		return "", fmt.Errorf("the token does not hold: %w", provider.ErrForged)
	}
	digest := web.HexSHA256(callback.Body)
	switch {
	case parsed.Issuer != "Vonage", parsed.ID == "", parsed.IssuedAt == nil:
		return "", fmt.Errorf("the token lacks a claim: %w", provider.ErrForged)
	case !hmac.Equal([]byte(strings.ToLower(parsed.PayloadHash)), []byte(digest)):
		return "", fmt.Errorf("the token is for another body: %w", provider.ErrForged)
	case c.APIKey != "" && parsed.APIKey != c.APIKey,
		c.Application != "" && parsed.Application != "" && parsed.Application != c.Application:
		return "", fmt.Errorf("the token is for another account: %w", provider.ErrForged)
	case web.CheckAge(parsed.IssuedAt.Time, callback.At, late) != nil,
		parsed.ExpiresAt != nil && callback.At.After(parsed.ExpiresAt.Add(leeway)),
		parsed.NotBefore != nil && callback.At.Before(parsed.NotBefore.Add(-leeway)):
		return "", provider.ErrStale
	}
	return parsed.ID, nil
}

// verifyParameters checks the sender and returns the signature: HMAC-SHA256 over the sorted
// parameters without sig itself, in hexadecimal. The account has to be set to that method. Vonage's
// other methods are weaker or not needed.
func (c *Config) verifyParameters(
	callback *provider.Callback, parameters map[string]string,
) (once string, err error) {
	given, err := hex.DecodeString(parameters["sig"])
	if err != nil || len(given) != sha256.Size {
		return "", fmt.Errorf("no signature: %w", provider.ErrForged)
	}
	text := signedText(parameters)
	if !web.SignedByAny(c.Secrets, given, func(secret string) []byte {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}) {
		return "", fmt.Errorf("wrong signature: %w", provider.ErrForged)
	}
	if account := parameters["api-key"]; account != "" && account != c.APIKey {
		return "", fmt.Errorf("for another account: %w", provider.ErrForged)
	}
	return hex.EncodeToString(given), web.CheckStamp(parameters["timestamp"], callback.At, late)
}

// signedText is "&name=value" for each parameter in the order of the names, with & and = in values
// written as _.
func signedText(parameters map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if name != "sig" {
			b.WriteString(
				"&" + name + "=" +
					strings.NewReplacer("&", "_", "=", "_").Replace(parameters[name]))
		}
	}
	return b.String()
}

// How long a token of an application is used. A signature costs about a millisecond, so one token
// serves many requests.
const (
	tokenLife  = 15 * time.Minute
	tokenSpare = 5 * time.Minute
)

// login makes the Authorization field of the Messages API.
type login struct {
	cfg Config

	mu    sync.Mutex
	token string    // guarded by mu
	until time.Time // guarded by mu: when the token has to be replaced
}

// header is a token of the application if there is one, otherwise the account's key and secret.
func (l *login) header(now time.Time) (string, error) {
	if l.cfg.Application == "" {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(l.cfg.APIKey+":"+
			l.cfg.APISecret)), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token == "" || !now.Before(l.until) {
		token, err := l.sign(now)
		if err != nil {
			return "", fmt.Errorf("sign a token for the application: %w", err)
		}
		l.token, l.until = token, now.Add(tokenLife-tokenSpare)
	}
	return "Bearer " + l.token, nil
}

func (l *login) sign(now time.Time) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"application_id": l.cfg.Application, "iat": now.Unix(), "exp": now.Add(tokenLife).Unix(),
		"jti": rand.Text(),
	}).SignedString(l.cfg.PrivateKey)
}
