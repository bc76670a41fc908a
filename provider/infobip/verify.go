package infobip

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// proofParameter is the query parameter of an address that shows that it is one of ours.
const proofParameter = "proof"

// address is where Infobip reports on one message: the key and its proof stand in the query. Who has seen one address can
// report on that message and on no other.
func (c *Config) address(key string) string {
	address := web.WithKey(c.Callback, key)
	u, err := url.Parse(address)
	if err != nil || len(c.Secrets) == 0 {
		return address
	}
	query := u.Query()
	query.Set(proofParameter, hex.EncodeToString(proof(c.Secrets[0], key)))
	u.RawQuery = query.Encode()
	return u.String()
}

// proof is HMAC-SHA256 of the key, under a label that keeps it apart from other uses of the secret.
func proof(secret, key string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("infobip callback " + key))
	return mac.Sum(nil)
}

// verify reports who calls. The key is that of the message about which the caller may speak; empty means any. Every way
// that is configured is tried, in constant time.
func (c *Config) verify(callback *provider.Callback) (key string, err error) {
	key, byURL := c.provenByURL(callback)
	basic, header := c.provenByBasic(callback), c.provenByHeader(callback)
	switch {
	case c.by(ByCertificate) && callback.Certificate, c.by(ByBasic) && basic, c.by(ByHeader) && header:
		return "", nil
	case c.by(ByURL) && byURL:
		return key, nil
	}
	return "", fmt.Errorf("no proof in the ways that callback_auth names: %w", provider.ErrForged)
}

func (c *Config) provenByURL(callback *provider.Callback) (key string, ok bool) {
	key = web.CallbackKey(callback.URL)
	_, rawQuery, _ := strings.Cut(callback.URL, "?")
	query, err := url.ParseQuery(rawQuery)
	if err != nil || key == "" {
		return "", false
	}
	given, err := hex.DecodeString(query.Get(proofParameter))
	if err != nil {
		return "", false
	}
	for _, secret := range c.Secrets {
		ok = hmac.Equal(given, proof(secret, key)) || ok
	}
	return key, ok
}

func (c *Config) provenByBasic(callback *provider.Callback) bool {
	encoded, ok := strings.CutPrefix(callback.Get("Authorization"), "Basic ")
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return false
	}
	user, password, _ := strings.Cut(string(decoded), ":")
	return c.isSecret(password) && same(user, c.User)
}

func (c *Config) provenByHeader(callback *provider.Callback) bool {
	return c.Header != "" && c.isSecret(callback.Get(c.Header))
}

func (c *Config) isSecret(given string) bool {
	ok := false
	for _, secret := range c.Secrets {
		ok = same(given, secret) || ok
	}
	return ok
}

// same compares in constant time, also when the lengths differ.
func same(a, b string) bool {
	sumA, sumB := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return hmac.Equal(sumA[:], sumB[:])
}
