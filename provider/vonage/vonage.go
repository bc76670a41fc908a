// Package vonage is the adapter for Vonage, formerly Nexmo: the Messages API v1 (description 1.20)
// and the older SMS API (description 1.0).
//
// It writes submissions as requests, reads the answers, and understands callbacks: those of the
// Messages API are signed by a JWT over the hash of the body, those of the SMS API by an HMAC over
// their parameters. Package provider/web handles connections, deadlines and redaction.
package vonage

import (
	"cmp"
	"crypto/rsa"
	"errors"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/sms"
	"dispatcher/provider/web"
)

// Both APIs take a time to live of 20 seconds to 7 days.
const (
	shortestValidity = 20 * time.Second
	longestValidity  = 7 * 24 * time.Hour
)

// Channel is an account or an application at Vonage.
type Channel struct {
	*web.Channel
	cfg Config
}

var _ web.Adapter = (*Channel)(nil)

// Open opens a channel from its settings.
func Open(values map[string]any, o web.Environment) (provider.Channel, error) {
	return web.Open(values, o, ParseSettings, New)
}

// New returns a channel. The configuration is one that ParseSettings accepts.
func New(cfg Config) *Channel {
	var api web.API = newMessages(cfg)
	if cfg.API == SMS {
		api = shortMessages{cfg}
	}
	return &Channel{Channel: web.New(cfg.Web, api), cfg: cfg}
}

// Capabilities are those that this adapter uses: receipts return our reference (client_ref,
// client-ref). Neither API is documented to recognise a repeated submission. The SMS API has an id
// and receipts for each part of a text. The Reports API, which may list a message later, is not
// used.
func (c *Channel) Capabilities() provider.Capabilities {
	receipts := c.cfg.acceptsCallbacks()
	return provider.Capabilities{
		KeyInReceipt: receipts, Receipts: receipts, PartReceipts: c.cfg.API == SMS,
	}
}

// ReadCallback returns the content of a status, a delivery receipt or an inbound message.
func (c *Channel) ReadCallback(callback *provider.Callback) (provider.CallbackContent, error) {
	if c.cfg.API == SMS {
		return c.cfg.readReceipt(callback)
	}
	return c.cfg.readStatus(callback)
}

// lifetime is the remaining validity, within Vonage's bounds; zero leaves it to Vonage.
func lifetime(validity, now time.Time) time.Duration {
	if validity.IsZero() {
		return 0
	}
	return min(max(validity.Sub(now), shortestValidity), longestValidity)
}

// API is one of the interfaces that Vonage offers.
type API uint8

const (
	// Messages is the Messages API v1.
	Messages API = iota
	// SMS is the SMS API.
	SMS
)

// Base addresses of the APIs.
const (
	messagesBase = "https://api.nexmo.com"
	smsBase      = "https://rest.nexmo.com"
)

// Config is an account or an application at Vonage.
type Config struct {
	Web web.Config
	API API
	// APIKey and APISecret authenticate the account.
	APIKey, APISecret string
	// Application is the id of an application, and PrivateKey its key. With them requests to the
	// Messages API carry a JWT instead of the account's secret.
	Application string
	PrivateKey  *rsa.PrivateKey
	// Secrets verify callbacks. Without one every callback is refused and none is requested.
	Secrets []string
	// From is the sender of messages without one.
	From string
	// Callback is the public URL for receipts; empty for none.
	Callback string
}

// ParseSettings reads the settings of a channel; all faults are reported together, each under its
// key.
//
//	api                     messages (default): the Messages API v1; or sms: the SMS API
//	api_key                 key of the account; callbacks of other accounts are refused
//	api_secret_file         file with its secret; needed unless an application is named
//	application_id          id of an application of the Messages API, called with a JWT
//	private_key_file        file with the application's private key, PEM
//	signature_secret_files  file with the secret that signs callbacks, or a list of two while it is
//	                        exchanged; without it receipts are neither requested nor accepted
//	from                    sender of messages that name none
//
// and those of web.ParseConfig.
func ParseSettings(values map[string]any, o web.Environment) (Config, error) {
	r := settings.New(values, o.ReadFile)
	cfg := Config{
		API:         settings.Choose(r, "api", map[string]API{"messages": Messages, "sms": SMS}),
		APIKey:      r.Text("api_key"),
		APISecret:   web.Secret(r, "api_secret_file"),
		Application: r.Text("application_id"),
		PrivateKey:  privateKey(r, "private_key_file"),
		Secrets:     web.Secrets(r, "signature_secret_files", o.ReadFile),
		From:        r.Text("from"),
		Callback:    o.Callback,
	}
	base := messagesBase
	if cfg.API == SMS {
		base = smsBase
	}
	cfg.Web = web.ParseConfig(r, base)
	cfg.check(r)
	r.RefuseUnknown()
	return cfg, web.JoinFaults(r.Err(), cfg.Web.Validate())
}

func (c *Config) check(r *settings.Reader) {
	if c.API == SMS && c.Application != "" {
		r.Failf("application_id", "belongs to api: messages")
	}
	if c.Application != "" {
		if c.PrivateKey == nil {
			r.Failf("private_key_file", "is missing")
		}
		return
	}
	if c.PrivateKey != nil {
		r.Failf("application_id", "is missing")
	}
	if c.APIKey == "" {
		r.Failf("api_key", "is missing")
	}
	if c.APISecret == "" {
		r.Failf("api_secret_file", "is missing")
	}
}

// minKey is the shortest accepted RSA key, in bytes.
const minKey = 2048 / 8

func privateKey(r *settings.Reader, name string) *rsa.PrivateKey {
	content := r.File(name)
	if content == nil {
		return nil
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM(content)
	switch {
	case err != nil: // its text could show content
		r.Failf(name, "holds no RSA private key in PEM form")
	case key.Size() < minKey:
		r.Failf(name, "holds a key of %d bits; Vonage's have 2048", key.N.BitLen())
	}
	return key
}

// acceptsCallbacks reports whether callbacks are requested and can be verified.
func (c *Config) acceptsCallbacks() bool { return c.Callback != "" && len(c.Secrets) > 0 }

var errSender = errors.New("the message names no sender, and the channel has no from")

// outgoing holds the fields that both APIs send.
type outgoing struct {
	from, to string
	encoding string // text or unicode
}

// prepare refuses what neither API can send. Both want numbers without the plus. The encoding is
// named so that Vonage splits and bills as package sms counts.
func (c *Config) prepare(s *provider.Submission) (outgoing, error) {
	o := outgoing{
		from: strings.TrimPrefix(cmp.Or(s.From, c.From), "+"), to: strings.TrimPrefix(s.To, "+"),
		encoding: "text",
	}
	if o.from == "" {
		return outgoing{}, errSender
	}
	if sms.Count(s.Text, sms.Reference8).Alphabet != sms.GSM7 {
		o.encoding = "unicode"
	}
	return o, nil
}
