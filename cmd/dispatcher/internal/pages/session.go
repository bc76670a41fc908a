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

	"dispatcher/cmd/dispatcher/internal/access"
)

const (
	// sessionLife is the life of a session; activity does not extend it.
	sessionLife = 12 * time.Hour
	// longestSession bounds a sealed session, in bytes. Browsers accept cookies of 4096 bytes, with
	// name and attributes.
	longestSession = 3900
)

// session is the sealed content of the cookie. It holds the token, which is checked at every
// request: a token that expires, or is removed from the file, ends its sessions at once.
type session struct {
	Token   string    `json:"t"`
	CSRF    string    `json:"c"` // the secret that every form of the session must send
	Expires time.Time `json:"x"`
	// AtIssuer is whether the user signed in at the issuer. When the token ends, the user signs in
	// there again.
	AtIssuer bool `json:"i,omitempty"`
}

func (s *session) end() time.Time { return s.Expires }

// errTokenTooLong means that the token does not fit into a cookie.
var errTokenTooLong = errors.New("the token is too long for a session of the console")

// sealer encrypts and authenticates the cookies of one kind. Instances with the same secret can
// open each other's.
type sealer struct{ aead cipher.AEAD }

// The kinds of cookies. Each has a key of its own, so that one cannot be used as the other.
const (
	sessions = "dispatcher console session"
	signIns  = "dispatcher console sign-in"
)

// sealed is content of a cookie that expires.
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

// open decrypts a cookie. It returns false for one that is not ours, was changed, or has expired.
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

// cookie holds a sealed session. On loopback its name has the port, because browsers share cookies
// between the ports of a host.
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

// isLoopback reports whether the browser uses a loopback address. Only there the cookies work
// without TLS.
func isLoopback(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return access.IsLoopback(strings.Trim(host, "[]"))
}

// isEncrypted reports whether the browser's connection has TLS, here or at a proxy that says so.
func isEncrypted(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}
