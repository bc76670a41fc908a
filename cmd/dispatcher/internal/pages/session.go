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
	"strconv"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
)

const (
	// sessionLife is the life of a session; activity does not extend it.
	sessionLife = 12 * time.Hour
	// longestCookie bounds the value of a cookie, in bytes: browsers accept 4096, with name and
	// attributes. A session takes up to mostCookies of them, because tokens of an issuer may name
	// hundreds of groups.
	longestCookie = 3900
	mostCookies   = 4
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

// errTokenTooLong means that the token does not fit into the cookies.
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
	if len(out) > mostCookies*longestCookie {
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

// setSession stores a sealed session in cookies; an empty one deletes them.
func setSession(w http.ResponseWriter, r *http.Request, sealed string) {
	for n := range mostCookies {
		part := sealed[:min(len(sealed), longestCookie)]
		sealed = sealed[len(part):]
		if _, err := r.Cookie(partName(r, n)); part == "" && n > 0 && err != nil {
			continue // there is none to delete
		}
		c := &http.Cookie{
			Name: partName(r, n), Value: part, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode, Secure: !isLoopback(r),
			MaxAge: int(sessionLife.Seconds()),
		}
		if part == "" {
			c.MaxAge = -1
		}
		http.SetCookie(w, c)
	}
}

// sealedSession joins the cookies of a session; empty when there is none.
func sealedSession(r *http.Request) (sealed string) {
	for n := range mostCookies {
		c, err := r.Cookie(partName(r, n))
		if err != nil {
			break
		}
		sealed += c.Value
	}
	return sealed
}

// partName is the name of the n-th cookie of a session, from 0.
func partName(r *http.Request, n int) string {
	if n == 0 {
		return cookieName(r)
	}
	return cookieName(r) + "." + strconv.Itoa(n+1)
}

// cookieName has the port on loopback, because browsers share cookies between the ports of a host.
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
