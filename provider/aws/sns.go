package aws

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // SNS signs with it unless a topic is set to version 2.
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// How far the time of a message may be from ours. SNS delivers a message again for up to an hour,
// with the time of its publication. AWS recommends an hour.
const (
	oldest = time.Hour + 5*time.Minute
	newest = 5 * time.Minute
)

// envelope is what SNS posts (Amazon SNS Developer Guide, "HTTP/HTTPS notification JSON format").
type envelope struct {
	Type, MessageID, TopicArn, Message, Timestamp string
	Subject                                       *string
	Token, SubscribeURL                           string
	SignatureVersion, Signature, SigningCertURL   string
}

// Kinds of messages.
const (
	notification = "Notification"
	confirmation = "SubscriptionConfirmation"
	goodbye      = "UnsubscribeConfirmation"
)

// verify reads the envelope and checks its sender. With certificates, SNS must have signed it and
// the topic must be configured; with secrets, the URL must carry one; with both, all of that.
func (c *Config) verify(callback *provider.Callback) (*envelope, error) {
	if len(c.Certificates) == 0 && len(c.Secrets) == 0 {
		return nil, fmt.Errorf("nobody may call back: %w", provider.ErrForged)
	}
	if len(c.Secrets) > 0 && !c.knows(callback) {
		return nil, fmt.Errorf("wrong secret: %w", provider.ErrForged)
	}
	if len(c.Certificates) == 0 && callback.Get("X-Amz-Sns-Rawdelivery") == "true" {
		return c.raw(callback)
	}
	var e envelope
	if err := json.Unmarshal(callback.Body, &e); err != nil {
		if len(c.Certificates) > 0 { // nothing shows that SNS sent it
			return nil, fmt.Errorf("no message of SNS: %w", provider.ErrForged)
		}
		return nil, fmt.Errorf("its JSON: %w", provider.ErrMalformed)
	}
	if len(c.Certificates) > 0 && !c.signed(&e, callback.At) {
		return nil, fmt.Errorf("wrong signature: %w", provider.ErrForged)
	}
	if len(c.Certificates) > 0 && e.lines() {
		return nil, fmt.Errorf("a value that could be several fields of what is signed: %w",
			provider.ErrMalformed)
	}
	if len(c.Topics) > 0 && !slices.Contains(c.Topics, e.TopicArn) {
		return nil, fmt.Errorf("a topic of somebody else: %w", provider.ErrForged)
	}
	at, err := time.Parse(time.RFC3339, e.Timestamp)
	if err != nil {
		return nil, fmt.Errorf("its time: %w", provider.ErrMalformed)
	}
	if age := callback.At.Sub(at); age > oldest || age < -newest {
		return nil, provider.ErrStale
	}
	return &e, nil
}

// lines reports whether a value contains line breaks. Names and values are signed line by line, so
// such a value could be cut into other fields. Only the message may contain line breaks: it is
// JSON, in which no line is a bare name.
func (e *envelope) lines() bool {
	subject := ""
	if e.Subject != nil {
		subject = *e.Subject
	}
	for _, value := range []string{
		e.MessageID, subject, e.Timestamp, e.TopicArn, e.Token, e.SubscribeURL,
	} {
		if strings.Contains(value, "\n") {
			return true
		}
	}
	return false
}

// knows reports whether the URL carries a valid secret.
func (c *Config) knows(callback *provider.Callback) bool {
	_, query, _ := strings.Cut(callback.URL, "?")
	values, _ := url.ParseQuery(query) // what cannot be read counts as missing
	known := false
	for _, secret := range c.Secrets {
		known = web.SameSecret(values.Get("secret"), secret) || known
	}
	return known
}

// raw is a message that SNS delivers without its envelope and unsigned.
func (c *Config) raw(callback *provider.Callback) (*envelope, error) {
	e := &envelope{
		Type: notification, Message: string(callback.Body),
		TopicArn:  callback.Get("X-Amz-Sns-Topic-Arn"),
		MessageID: callback.Get("X-Amz-Sns-Message-Id"),
	}
	if len(c.Topics) > 0 && !slices.Contains(c.Topics, e.TopicArn) {
		return nil, fmt.Errorf("a topic of somebody else: %w", provider.ErrForged)
	}
	return e, nil
}

// certificateHosts matches the hosts on which SNS publishes its certificates.
var certificateHosts = regexp.MustCompile(`^sns\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$`)

// signed reports whether one of the certificates signed the message. The certificate that the
// message names is not fetched; an address that is not Amazon's is refused.
func (c *Config) signed(e *envelope, now time.Time) bool {
	address, err := url.Parse(e.SigningCertURL)
	if err != nil || address.Scheme != "https" || !certificateHosts.MatchString(address.Host) ||
		!strings.HasSuffix(address.Path, ".pem") {
		return false
	}
	signature, err := base64.StdEncoding.DecodeString(e.Signature)
	if err != nil {
		return false
	}
	hash, digest := e.digest()
	if digest == nil {
		return false
	}
	return slices.ContainsFunc(c.Certificates, func(certificate *x509.Certificate) bool {
		key, ok := certificate.PublicKey.(*rsa.PublicKey)
		return ok && !now.Before(certificate.NotBefore) && !now.After(certificate.NotAfter) &&
			rsa.VerifyPKCS1v15(key, hash, digest, signature) == nil
	})
}

// digest returns the digest of the signed text, by the version of the signature; nil for unknown
// versions.
func (e *envelope) digest() (crypto.Hash, []byte) {
	text := e.canonical()
	switch {
	case text == "":
		return 0, nil
	case e.SignatureVersion == "1":
		sum := sha1.Sum([]byte(text)) //nolint:gosec // See the import.
		return crypto.SHA1, sum[:]
	case e.SignatureVersion == "2":
		sum := sha256.Sum256([]byte(text))
		return crypto.SHA256, sum[:]
	}
	return 0, nil
}

// canonical is the signed text ("Verifying the signatures of Amazon SNS messages"): names and
// values on separate lines, in the order of the names.
func (e *envelope) canonical() string {
	var b strings.Builder
	add := func(name, value string) { b.WriteString(name + "\n" + value + "\n") }
	add("Message", e.Message)
	add("MessageId", e.MessageID)
	switch e.Type {
	case notification:
		if e.Subject != nil {
			add("Subject", *e.Subject)
		}
	case confirmation, goodbye:
		add("SubscribeURL", e.SubscribeURL)
	default:
		return ""
	}
	add("Timestamp", e.Timestamp)
	if e.Type != notification {
		add("Token", e.Token)
	}
	add("TopicArn", e.TopicArn)
	add("Type", e.Type)
	return b.String()
}
