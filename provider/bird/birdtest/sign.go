package birdtest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

func (c *Config) mac(content ...[]byte) []byte {
	h := hmac.New(sha256.New, []byte(c.SigningKey))
	for _, part := range content {
		h.Write(part)
	}
	return h.Sum(nil)
}

// signURL signs like the Channels API: time, URL and digest of the body on separate lines.
func (c *Config) signURL(r *http.Request, address string, body []byte) {
	c.sign(r, address, body)
}

// signQuery signs like MessageBird before it had JWTs: the query, sorted by name, replaces the URL.
func (c *Config) signQuery(r *http.Request, body []byte) {
	c.sign(r, r.URL.Query().Encode(), body)
}

func (c *Config) sign(r *http.Request, address string, body []byte) {
	at := strconv.FormatInt(stamp().Unix(), 10)
	digest := sha256.Sum256(body)
	signature := c.mac([]byte(at), []byte("\n"), []byte(address), []byte("\n"), digest[:])
	r.Header.Set("MessageBird-Request-Timestamp", at)
	r.Header.Set("MessageBird-Signature", base64.StdEncoding.EncodeToString(signature))
}

// token is a JWT (RFC 7519) by HS256 over the digests of URL and body.
func (c *Config) token(address string, body []byte) string {
	now := stamp()
	claims := map[string]any{
		"iss": "MessageBird", "nbf": now.Unix(), "iat": now.Unix(),
		"exp": now.Add(time.Minute).Unix(), "jti": rand.Text(),
		"url_hash": digestOf([]byte(address)),
	}
	if len(body) > 0 {
		claims["payload_hash"] = digestOf(body)
	}
	payload, _ := json.Marshal(claims) // the claims can always be encoded
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(payload)
	return signed + "." + encode(c.mac([]byte(signed)))
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
