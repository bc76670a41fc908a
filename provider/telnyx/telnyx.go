// Package telnyx sends through the Telnyx Messaging API v2 and reads its webhooks.
// Telnyx documents no idempotency key for messages (its Idempotency-Key is for endpoints that
// declare it), no validity, and no search by our reference: a message can be read by its Telnyx id
// only. Instead each message has its own webhook URL, which names the submission. Events repeat the
// URL within the signed content, so a receipt can resolve a submission without an answer.
package telnyx

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"

	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

// Channel is one Telnyx messaging profile, or one number of it.
type Channel struct {
	*web.Channel
	cfg Config
}

var _ web.Adapter = (*Channel)(nil)

// Open opens a channel from its settings.
func Open(values map[string]any, o web.Environment) (provider.Channel, error) {
	return web.Open(values, o, ParseSettings, New)
}

// New returns a channel; connections are made by the first submissions.
func New(cfg Config) *Channel { return &Channel{Channel: web.New(cfg.Web, newAPI(cfg)), cfg: cfg} }

// Capabilities says what POST /v2/messages offers.
func (c *Channel) Capabilities() provider.Capabilities {
	receipts := c.cfg.receipts()
	return provider.Capabilities{KeyInReceipt: receipts, Receipts: receipts}
}

// Config is one messaging profile.
type Config struct {
	Web web.Config
	// APIKey is a v2 key.
	APIKey string
	// PublicKeys verify webhooks: the account's key, and during a rotation the other one. Without
	// one no receipts are requested.
	PublicKeys []ed25519.PublicKey
	// From is the sender of messages without one: a number, a short code or an alphanumeric sender.
	From string
	// Profile is the messaging profile. Alphanumeric senders need it, and it chooses a number of
	// its pool if there is no sender.
	Profile string
	// Callback is the public URL of this channel; empty for none.
	Callback string
}

// receipts reports whether events are requested: they are useless if they cannot be verified.
func (c *Config) receipts() bool { return c.Callback != "" && len(c.PublicKeys) > 0 }

// address is the base of the API.
const address = "https://api.telnyx.com/v2"

// maxKeys is how many public keys may be valid at once.
const maxKeys = 2

// ParseSettings reads the settings of a channel:
//
//	api_key_file          file with a v2 API key
//	public_key            the account's public key, in base64, or a list of two while it is
//	                      exchanged; webhooks are verified with it, and without it no receipts come
//	from                  sender of messages that name none
//	messaging_profile_id  needed for alphanumeric senders and number pools
//
// and those of web.ParseConfig. All faults are reported together, each under its key.
func ParseSettings(values map[string]any, o web.Environment) (Config, error) {
	r := settings.New(values, o.ReadFile)
	cfg := Config{
		Web: web.ParseConfig(r, address), APIKey: web.Secret(r, "api_key_file"),
		PublicKeys: publicKeys(r, "public_key"),
		From:       r.Text("from"), Profile: r.Text("messaging_profile_id"), Callback: o.Callback,
	}
	r.RefuseUnknown()
	return cfg, web.JoinFaults(r.Err(), cfg.Validate())
}

func publicKeys(r *settings.Reader, key string) []ed25519.PublicKey {
	texts := r.Texts(key)
	if len(texts) > maxKeys {
		r.Failf(key, "lists %d keys; at most %d can be valid at once", len(texts), maxKeys)
		return nil
	}
	var keys []ed25519.PublicKey
	for _, text := range texts {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) != ed25519.PublicKeySize {
			r.Failf(key, "is not the base64 of %d bytes", ed25519.PublicKeySize)
			continue
		}
		keys = append(keys, raw)
	}
	return keys
}

// Validate reports invalid settings, each fault under its key.
func (c *Config) Validate() error {
	faults := []error{c.Web.Validate()}
	if c.APIKey == "" {
		faults = append(faults, errors.New("api_key_file: is missing"))
	}
	return errors.Join(faults...)
}
