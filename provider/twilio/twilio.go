// Package twilio sends through Twilio's Programmable Messaging API, version 2010-04-01, and reads
// its status callbacks and inbound messages.
// Twilio has no idempotency key and cannot be searched by our reference: the list of messages
// filters by numbers and dates only, and shows nothing of a submission but its text. Instead the
// status callback of each message has its own address, which names the submission. Twilio signs the
// address, so a receipt can resolve a submission without an answer.
package twilio

import (
	"errors"
	"regexp"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

// Channel is one Twilio account, or one of its messaging services.
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
func New(cfg Config) *Channel {
	return &Channel{Channel: web.New(cfg.Web, newAPI(cfg, time.Now)), cfg: cfg}
}

// Capabilities says what the Message resource offers.
func (c *Channel) Capabilities() provider.Capabilities {
	receipts := c.cfg.receipts()
	return provider.Capabilities{KeyInReceipt: receipts, Receipts: receipts}
}

// Config is one account.
type Config struct {
	Web web.Config
	// AccountSID is the account that sends, "AC" and 32 hexadecimal digits.
	AccountSID string
	// KeySID and KeySecret are an API key of the account.
	KeySID, KeySecret string
	// AuthTokens are the account's tokens, with which Twilio signs callbacks: the primary one, and
	// during a rotation the secondary one. With neither these nor SharedKeys no receipts are
	// requested.
	AuthTokens []string
	// SharedKeys are the secrets of shared keys, with which Twilio signs callbacks instead of the
	// token.
	SharedKeys []string
	// From is the sender of messages without one.
	From string
	// MessagingService, if set, chooses the sender of messages without one.
	MessagingService string
	// Callback is the public URL of this channel; empty for none.
	Callback string
}

// receipts reports whether status callbacks are requested: they are useless if they cannot be
// verified.
func (c *Config) receipts() bool {
	return c.Callback != "" && len(c.AuthTokens)+
		len(c.SharedKeys) > 0
}

// address is the base of Twilio's API, without a region.
const address = "https://api.twilio.com"

// ParseSettings reads the settings of a channel:
//
//	account_sid          the account, AC...
//	api_key_sid          an API key of the account, SK...
//	api_key_secret_file  file with the key's secret
//	auth_token_file      file with the account's auth token, or a list of two while it is exchanged;
//	                     callbacks are verified with it, and without it and shared keys no receipts
//	                     come
//	shared_key_files     file with the secret of a shared key that signs callbacks, or a list of two
//	                     while it is exchanged
//	from                 sender of messages that name none
//	messaging_service    MG..., chooses the sender of messages that name none
//
// and those of web.ParseConfig. All faults are reported together, each under its key.
func ParseSettings(values map[string]any, o web.Environment) (Config, error) {
	r := settings.New(values, o.ReadFile)
	cfg := Config{
		Web:        web.ParseConfig(r, address),
		AccountSID: r.Text("account_sid"), KeySID: r.Text("api_key_sid"),
		KeySecret:  web.Secret(r, "api_key_secret_file"),
		AuthTokens: web.Secrets(r, "auth_token_file", o.ReadFile),
		SharedKeys: web.Secrets(r, "shared_key_files", o.ReadFile),
		From:       r.Text("from"), MessagingService: r.Text("messaging_service"),
		Callback: o.Callback,
	}
	r.RefuseUnknown()
	return cfg, web.JoinFaults(r.Err(), cfg.Validate())
}

// sid is the format of Twilio's identifiers: two letters for the type, then hexadecimal digits.
var sid = regexp.MustCompile(`^[A-Z]{2}[0-9a-f]{32}$`)

// Validate reports invalid settings, each fault under its key.
func (c *Config) Validate() error {
	faults := []error{
		isSID("account_sid", c.AccountSID, "AC"), isSID("api_key_sid", c.KeySID, "SK"),
		c.Web.Validate(),
	}
	if c.KeySecret == "" {
		faults = append(faults, errors.New("api_key_secret_file: is missing"))
	}
	if c.MessagingService != "" {
		faults = append(faults, isSID("messaging_service", c.MessagingService, "MG"))
	}
	return errors.Join(faults...)
}

func isSID(key, value, kind string) error {
	if value == "" {
		return errors.New(key + ": is missing")
	}
	if !sid.MatchString(value) || value[:2] != kind {
		return errors.New(key + ": is not " + kind + " and 32 hexadecimal digits")
	}
	return nil
}
