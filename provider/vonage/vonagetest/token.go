package vonagetest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"dispatcher/provider/web/webtest"
)

// authorized checks the Authorization field: a JWT of the application (RS256), or the account's key
// and secret.
func (c *Config) authorized(r *http.Request, now time.Time) error {
	if c.PublicKey == nil {
		if key, secret, ok := r.BasicAuth(); !ok || key != c.APIKey || secret != c.APISecret {
			return errors.New("wrong key or secret")
		}
		return nil
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	head, rest, _ := strings.Cut(token, ".")
	payload, mac, whole := strings.Cut(rest, ".")
	if !ok || !whole {
		return errors.New("no token")
	}
	sum := sha256.Sum256([]byte(head + "." + payload))
	signature, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil || rsa.VerifyPKCS1v15(c.PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return errors.New("wrong signature")
	}
	return c.claimed(head, payload, now)
}

func (c *Config) claimed(head, payload string, now time.Time) error {
	var header struct {
		Alg string `json:"alg"`
	}
	var claims struct {
		Application string `json:"application_id"`
		IssuedAt    int64  `json:"iat"`
		Expires     int64  `json:"exp"`
		ID          string `json:"jti"`
	}
	if decode(head, &header) != nil || decode(payload, &claims) != nil {
		return errors.New("unreadable token")
	}
	if header.Alg != "RS256" || claims.Application != c.Application || claims.ID == "" ||
		claims.IssuedAt > now.Unix() || claims.Expires <= now.Unix() ||
		claims.Expires-claims.IssuedAt > 24*60*60 {
		return errors.New("a claim of the token does not hold")
	}
	return nil
}

func decode(part string, into any) error {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// tokenCall is a callback of the Messages API: a JWT (HS256) under the signature secret names the
// hash of the body.
func (c *Config) tokenCall(callback string, event map[string]any) (*http.Request, error) {
	body, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	r, err := webtest.Post(callback, "application/json", body)
	if err != nil || c.Secret == "" {
		return r, err
	}
	hash := sha256.Sum256(body)
	claims, err := json.Marshal(map[string]any{
		"iat": time.Now().Unix(), "jti": rand.Text(), "iss": "Vonage",
		"payload_hash": hex.EncodeToString(hash[:]),
		"api_key":      c.APIKey, "application_id": c.Application,
	})
	if err != nil {
		return nil, err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(claims)
	mac := hmac.New(sha256.New, []byte(c.Secret))
	mac.Write([]byte(text))
	r.Header.Set("Authorization",
		"Bearer "+text+"."+base64.RawURLEncoding.EncodeToString(mac.Sum(nil)))
	return r, nil
}
