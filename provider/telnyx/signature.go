package telnyx

import (
	"crypto/ed25519"
	"encoding/base64"
	"strconv"
	"time"

	"dispatcher/provider"
)

// The headers of a webhook, under their canonical names.
const (
	signatureHeader = "Telnyx-Signature-Ed25519"
	timestampHeader = "Telnyx-Timestamp"
)

// tolerance is how far the time of a webhook may be from ours.
const tolerance = 5 * time.Minute

// verify checks the Ed25519 signature over "<timestamp>|<body>", and then the timestamp, in seconds since 1970. once
// is the signature in its one spelling.
func verify(c *provider.Callback, keys []ed25519.PublicKey) (once string, err error) {
	stamp := c.Get(timestampHeader)
	signature, err := base64.StdEncoding.DecodeString(c.Get(signatureHeader))
	if err != nil || len(signature) != ed25519.SignatureSize {
		return "", provider.ErrForged
	}
	signed := append([]byte(stamp+"|"), c.Body...)
	genuine := false
	for _, key := range keys {
		genuine = ed25519.Verify(key, signed, signature) || genuine
	}
	if !genuine {
		return "", provider.ErrForged
	}
	seconds, err := strconv.ParseUint(stamp, 10, 40)
	if err != nil {
		return "", provider.ErrMalformed
	}
	if at := time.Unix(int64(seconds), 0); at.Before(c.At.Add(-tolerance)) || at.After(c.At.Add(tolerance)) {
		return "", provider.ErrStale
	}
	return base64.StdEncoding.EncodeToString(signature), nil
}
