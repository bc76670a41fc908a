package pages

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// sessionLife bounds a session, whatever its user does.
	sessionLife = 12 * time.Hour
	// longestSession is what browsers take as a cookie, less its name and attributes.
	longestSession = 3900
)

// session is what the cookie holds, sealed. It has the token itself, which is checked at every
// request: a token that is taken out of the file, or that expires, ends its sessions at once.
type session struct {
	Token   string    `json:"t"`
	CSRF    string    `json:"c"` // what every form of the session must send
	Expires time.Time `json:"x"`
	// AtIssuer: it began at the issuer, and leads there again when its token has ended.
	AtIssuer bool `json:"i,omitempty"`
}

func (s *session) end() time.Time { return s.Expires }

// errTokenTooLong refuses a token that no cookie has space for.
var errTokenTooLong = errors.New("the token is too long for a session of the console")

// sealer encrypts what a cookie holds, of one kind. Instances with the same secret read each
// other's.
type sealer struct{ aead cipher.AEAD }

// The kinds. One is never taken for the other.
const (
	sessions = "dispatcher console session"
	signIns  = "dispatcher console sign-in"
)

// sealed has an end.
type sealed interface{ end() time.Time }

func newSealer(secret []byte, kind string) (*sealer, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, kind, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &sealer{aead}, err
}

func (s *sealer) seal(of sealed) (string, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return "", err
	}
	out := base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, nil))
	if len(out) > longestSession {
		return "", errTokenTooLong
	}
	return out, nil
}

// open reports false for a cookie that is not ours, was changed, or has expired.
func (s *sealer) open(cookie string, now time.Time, into sealed) bool {
	raw, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil {
		return false
	}
	text, err := s.aead.Open(nil, nil, raw, nil)
	if err != nil {
		return false
	}
	return json.Unmarshal(text, into) == nil && now.Before(into.end())
}

// cookie holds a sealed session. Browsers do not tell ports of one host apart, so on loopback the
// port is in the name.
func cookie(r *http.Request, sealed string) *http.Cookie {
	c := &http.Cookie{
		Name: cookieName(r), Value: sealed, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: !isLoopback(r),
		MaxAge: int(sessionLife.Seconds()),
	}
	if sealed == "" {
		c.MaxAge = -1
	}
	return c
}

func cookieName(r *http.Request) string {
	if !isLoopback(r) {
		return "__Host-dispatcher"
	}
	_, port, _ := net.SplitHostPort(r.Host)
	return "dispatcher-" + port
}

// isLoopback reports whether the browser reached us by a loopback address: without TLS the cookie
// would be refused elsewhere.
func isLoopback(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isEncrypted reports whether the browser's connection was, as far as a proxy says.
func isEncrypted(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}
