package awstest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// authentic verifies Signature Version 4 as the IAM User Guide describes it ("Create a signed AWS
// API request").
func (c *Config) authentic(r *http.Request, body []byte) error {
	fields, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return errors.New("MissingAuthenticationToken")
	}
	parts := map[string]string{}
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		parts[name] = value
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 5*time.Minute {
		return errors.New("RequestExpired")
	}
	day := at.Format("20060102")
	scope := day + "/" + c.Region + "/sms-voice/aws4_request"
	if parts["Credential"] != c.AccessKeyID+"/"+scope {
		return errors.New("UnrecognizedClientException")
	}
	if r.Header.Get("X-Amz-Security-Token") != c.SessionToken {
		return errors.New("InvalidClientTokenId")
	}
	signed := strings.Split(parts["SignedHeaders"], ";")
	for _, needed := range c.needed() {
		if !slices.Contains(signed, needed) {
			return errors.New("IncompleteSignature: " + needed)
		}
	}
	text := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + scope + "\n" +
		hexSum([]byte(canonical(r, body, signed)))
	key := mac([]byte("AWS4"+c.SecretAccessKey), day)
	for _, step := range []string{c.Region, "sms-voice", "aws4_request"} {
		key = mac(key, step)
	}
	if hex.EncodeToString(mac(key, text)) != parts["Signature"] {
		return errors.New("SignatureDoesNotMatch")
	}
	return nil
}

// needed are the header fields that a signature has to cover.
func (c *Config) needed() []string {
	if c.SessionToken != "" {
		return []string{"host", "x-amz-date", "x-amz-security-token"}
	}
	return []string{"host", "x-amz-date"}
}

// canonical is the canonical request.
func canonical(r *http.Request, body []byte, signed []string) string {
	lines := []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery}
	for _, name := range signed {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length": // net/http removes it from the header
			value = lengthOf(body)
		}
		lines = append(lines, name+":"+strings.Join(strings.Fields(value), " "))
	}
	lines = append(lines, "", strings.Join(signed, ";"), hexSum(body))
	return strings.Join(lines, "\n")
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
