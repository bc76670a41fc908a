package vonage

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// How long a token of an application is used. A signature costs about a millisecond, so that one serves many requests.
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

// header is a token of the application when there is one, and otherwise the account's key and secret.
func (l *login) header(now time.Time) (string, error) {
	if l.cfg.Application == "" {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(l.cfg.APIKey+":"+l.cfg.APISecret)), nil
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
		"application_id": l.cfg.Application, "iat": now.Unix(), "exp": now.Add(tokenLife).Unix(), "jti": rand.Text(),
	}).SignedString(l.cfg.PrivateKey)
}
