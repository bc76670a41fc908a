package sinch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
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

// late is how long after its time a callback is taken. Sinch calls again for 22 hours and 45 minutes and does not say whether it
// signs anew.
var late = web.RetryTolerance(23 * time.Hour)

// aNonce has no point: it stands between the body and the time, and points part them.
var aNonce = regexp.MustCompile(`^[!-\-/-~]{1,128}$`)

// verify reports who calls, and the nonce of the callback: Sinch signs "body.nonce.timestamp" with HMAC-SHA256 and
// writes the sum in base 64.
func (c *Config) verify(callback *provider.Callback) (nonce string, err error) {
	nonce = callback.Get(headerNonce)
	given, err := base64.StdEncoding.DecodeString(callback.Get(headerSignature))
	if err != nil || len(given) != sha256.Size || !aNonce.MatchString(nonce) || callback.Get(headerAlgorithm) != algorithm {
		return "", fmt.Errorf("no signature: %w", provider.ErrForged)
	}
	stamp := callback.Get(headerTime)
	if !web.SignedByAny(c.Secrets, given, func(secret string) []byte {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(callback.Body)
		mac.Write([]byte("." + nonce + "." + stamp))
		return mac.Sum(nil)
	}) {
		return "", fmt.Errorf("wrong signature: %w", provider.ErrForged)
	}
	return nonce, web.CheckStamp(stamp, callback.At, late)
}
