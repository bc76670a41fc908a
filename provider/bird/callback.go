package bird

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// readReport reads a status report or a forwarded message of the messages endpoint: fields in the
// query of a GET, or in the form of a POST.
func readReport(callback *provider.Callback) (provider.CallbackContent, error) {
	fields, err := fieldsOf(callback)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	switch {
	case fields.Has("status"):
		return readStatus(fields, callback)
	case fields.Has("originator") && fields.Has("body"):
		return readForwarded(fields, callback)
	}
	return provider.CallbackContent{}, nil
}

func fieldsOf(callback *provider.Callback) (url.Values, error) {
	_, text, _ := strings.Cut(callback.URL, "?")
	if callback.Method == http.MethodPost && len(callback.Body) > 0 {
		text = string(callback.Body)
	}
	fields, err := url.ParseQuery(text)
	if err != nil {
		return nil, fmt.Errorf("its fields: %w", provider.ErrMalformed)
	}
	return fields, nil
}

func readStatus(fields url.Values, callback *provider.Callback) (provider.CallbackContent, error) {
	receipt := describe(fields.Get("status"), fields.Get("statusReason"),
		fields.Get("statusErrorCode"))
	receipt.Reference, receipt.Key, receipt.At = fields.Get("id"),
		web.OwnKey(fields.Get("reference")),
		callback.At
	if !web.PlainID(receipt.Reference) {
		return provider.CallbackContent{}, fmt.Errorf("it has no id: %w", provider.ErrMalformed)
	}
	return provider.CallbackContent{Receipts: []provider.Receipt{receipt}}, nil
}

func readForwarded(
	fields url.Values, callback *provider.Callback,
) (provider.CallbackContent, error) {
	in := provider.Inbound{
		Reference: fields.Get("id"), From: web.International(fields.Get("originator")),
		To:   web.International(fields.Get("recipient")),
		Text: fields.Get("body"), At: callback.At,
	}
	if in.From == "" || in.To == "" {
		return provider.CallbackContent{}, fmt.Errorf("it has no number: %w", provider.ErrMalformed)
	}
	return provider.CallbackContent{Inbound: []provider.Inbound{in}}, nil
}

// event is what the Channels API posts: the message as it is now.
type event struct {
	Service string `json:"service"`
	Event   string `json:"event"`
	Payload struct {
		ID        string `json:"id"`
		Reference string `json:"reference"`
		Status    string `json:"status"`
		Reason    string `json:"reason"`
		Failure   struct {
			Source struct {
				Code string `json:"code"`
			} `json:"source"`
		} `json:"failure"`
		Sender struct {
			Contact identifier `json:"contact"`
		} `json:"sender"`
		Receiver struct {
			Connector struct {
				Value string `json:"identifierValue"`
			} `json:"connector"`
		} `json:"receiver"`
		Body struct {
			Text struct {
				Text string `json:"text"`
			} `json:"text"`
		} `json:"body"`
	} `json:"payload"`
}

// readEvent reads an event of the Channels API. Events of other services and channels are ignored.
func readEvent(callback *provider.Callback) (provider.CallbackContent, error) {
	var e event
	if err := json.Unmarshal(callback.Body, &e); err != nil {
		return provider.CallbackContent{}, fmt.Errorf("its JSON: %w", provider.ErrMalformed)
	}
	if e.Service != "channels" {
		return provider.CallbackContent{}, nil
	}
	switch e.Event {
	case "sms.outbound":
		return e.status(callback)
	case "sms.inbound":
		return e.inbound(callback)
	}
	return provider.CallbackContent{}, nil
}

func (e *event) status(callback *provider.Callback) (provider.CallbackContent, error) {
	p := &e.Payload
	receipt := describe(p.Status, p.Reason, p.Failure.Source.Code)
	receipt.Reference, receipt.Key, receipt.At = p.ID, web.OwnKey(p.Reference), callback.At
	if !web.PlainID(p.ID) || p.Status == "" {
		return provider.CallbackContent{},
			fmt.Errorf("it has no id or no status: %w", provider.ErrMalformed)
	}
	return provider.CallbackContent{Receipts: []provider.Receipt{receipt}}, nil
}

func (e *event) inbound(callback *provider.Callback) (provider.CallbackContent, error) {
	p := &e.Payload
	in := provider.Inbound{
		Reference: p.ID, From: web.International(p.Sender.Contact.Value),
		To:   web.International(p.Receiver.Connector.Value),
		Text: p.Body.Text.Text, At: callback.At,
	}
	if in.From == "" {
		return provider.CallbackContent{}, fmt.Errorf("it has no sender: %w", provider.ErrMalformed)
	}
	return provider.CallbackContent{Inbound: []provider.Inbound{in}}, nil
}

// Header fields that carry a signature.
const (
	headerJWT       = "Messagebird-Signature-Jwt"
	headerSignature = "Messagebird-Signature"
	headerTime      = "Messagebird-Request-Timestamp"
)

// late is the age up to which a callback with an HMAC is accepted. Bird retries for 8 hours and
// does not say whether it signs again. A JWT is valid for a minute, so each attempt has a new one.
var late = web.RetryTolerance(8 * time.Hour)

// claims is what MessageBird-Signature-JWT holds.
type claims struct {
	jwt.RegisteredClaims
	URLHash     string `json:"url_hash"`
	PayloadHash string `json:"payload_hash"`
}

// verify checks the sender; once is the ReplayID. The messages endpoint signs with a JWT and, the
// older way, with an HMAC over the sorted query; the Channels API with an HMAC over the URL. For a
// callback with a JWT, the JWT alone decides.
func (c *Config) verify(callback *provider.Callback) (once string, err error) {
	if token := callback.Get(headerJWT); token != "" && c.API == Messages {
		return c.verifyJWT(token, callback)
	}
	return c.verifyHMAC(callback)
}

func (c *Config) verifyJWT(token string, callback *provider.Callback) (string, error) {
	keys := jwt.VerificationKeySet{}
	for _, key := range c.SigningKeys {
		keys.Keys = append(keys.Keys, []byte(key))
	}
	if len(keys.Keys) == 0 {
		return "", fmt.Errorf("no signing key is configured: %w", provider.ErrForged)
	}
	var said claims
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation())
	if _, err := parser.ParseWithClaims(token, &said,
		func(*jwt.Token) (any, error) { return keys, nil }); err != nil {
		return "", fmt.Errorf("the JWT does not hold: %w", provider.ErrForged)
	}
	switch {
	case said.Issuer != "MessageBird", said.ID == "", said.NotBefore == nil, said.ExpiresAt == nil:
		return "", fmt.Errorf("the JWT lacks a claim: %w", provider.ErrForged)
	case !same(said.URLHash, web.HexSHA256([]byte(callback.URL))):
		return "", fmt.Errorf("the JWT is for another URL: %w", provider.ErrForged)
	case len(callback.Body) == 0 && said.PayloadHash != "",
		len(callback.Body) > 0 && !same(said.PayloadHash, web.HexSHA256(callback.Body)):
		return "", fmt.Errorf("the JWT is for another body: %w", provider.ErrForged)
	case callback.At.Before(said.NotBefore.Add(-web.Tolerance)),
		callback.At.After(said.NotBefore.Add(web.Tolerance)),
		callback.At.After(said.ExpiresAt.Add(web.Tolerance)):
		return "", provider.ErrStale
	}
	return said.ID, nil
}

func same(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

// verifyHMAC checks HMAC-SHA256(time \n address \n SHA-256(body)), where address is the URL, or its
// sorted query.
func (c *Config) verifyHMAC(callback *provider.Callback) (string, error) {
	given, err := base64.StdEncoding.DecodeString(callback.Get(headerSignature))
	if err != nil || len(given) != sha256.Size {
		return "", fmt.Errorf("no signature: %w", provider.ErrForged)
	}
	address := callback.URL
	if c.API == Messages {
		if address, err = sortedQuery(callback.URL); err != nil {
			return "", fmt.Errorf("%w: %w", err, provider.ErrForged)
		}
	}
	stamp := callback.Get(headerTime)
	if !web.SignedByAny(c.SigningKeys, given,
		func(key string) []byte { return sign([]byte(key), stamp, address, callback.Body) }) {
		return "", fmt.Errorf("wrong signature: %w", provider.ErrForged)
	}
	return hex.EncodeToString(given), web.CheckStamp(stamp, callback.At, late)
}

func sign(key []byte, stamp, address string, body []byte) []byte {
	sum := sha256.Sum256(body)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(stamp + "\n" + address + "\n"))
	mac.Write(sum[:])
	return mac.Sum(nil)
}

// sortedQuery is the query of a URL with its fields in the order of their names.
func sortedQuery(address string) (string, error) {
	_, query, _ := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", errors.New("its query cannot be read")
	}
	return values.Encode(), nil
}
