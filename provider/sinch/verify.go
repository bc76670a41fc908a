package sinch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"dispatcher/provider"
)

// Header fields of a signed callback, canonical.
const (
	headerSignature = "X-Sinch-Webhook-Signature"
	headerAlgorithm = "X-Sinch-Webhook-Signature-Algorithm"
	headerNonce     = "X-Sinch-Webhook-Signature-Nonce"
	headerTime      = "X-Sinch-Webhook-Signature-Timestamp"
)

// algorithm is the only one that Sinch names.
const algorithm = "HmacSHA256"

// tolerance is how far the time of a callback may be from ours.
const tolerance = 5 * time.Minute

// verify reports who calls, and the nonce of the callback: Sinch signs "body.nonce.timestamp" with HMAC-SHA256 and
// writes the sum in base 64.
func (c *Config) verify(callback *provider.Callback) (nonce string, err error) {
	nonce = callback.Get(headerNonce)
	given, err := base64.StdEncoding.DecodeString(callback.Get(headerSignature))
	if err != nil || len(given) != sha256.Size || nonce == "" || callback.Get(headerAlgorithm) != algorithm {
		return "", fmt.Errorf("no signature: %w", provider.ErrForged)
	}
	stamp := callback.Get(headerTime)
	genuine := false
	for _, secret := range c.Secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(callback.Body)
		mac.Write([]byte("." + nonce + "." + stamp))
		genuine = hmac.Equal(given, mac.Sum(nil)) || genuine
	}
	if !genuine {
		return "", fmt.Errorf("wrong signature: %w", provider.ErrForged)
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return "", fmt.Errorf("its time is no number: %w", provider.ErrMalformed)
	}
	if age := callback.At.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return "", provider.ErrStale
	}
	return nonce, nil
}
