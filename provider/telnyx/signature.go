package telnyx

import (
	"crypto/ed25519"
	"encoding/base64"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// The headers of a webhook, under their canonical names.
const (
	signatureHeader = "Telnyx-Signature-Ed25519"
	timestampHeader = "Telnyx-Timestamp"
)

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
	return base64.StdEncoding.EncodeToString(signature), web.CheckStamp(stamp, c.At, web.Tolerance)
}
