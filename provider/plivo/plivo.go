// Package plivo sends through Plivo's Message API, version 1, and reads its status callbacks and
// inbound messages.
// Plivo has no idempotency key, and its list of messages cannot be searched by our reference.
// Instead the status callback of each message has its own address, which names the submission. So a
// receipt can resolve a submission without an answer. Signature V3 covers the address and the form.
// Signature V2, the only one that Plivo documents for messages, covers neither query nor form. So
// the query holds a proof that we made the address, see Channel.ReadCallback.
package plivo

import (
	"errors"
	"regexp"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

// Channel is one Plivo account or subaccount.
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

// Capabilities says what POST /Message/ offers.
func (c *Channel) Capabilities() provider.Capabilities {
	receipts := c.cfg.Callback != ""
	return provider.Capabilities{KeyInReceipt: receipts, Receipts: receipts}
}

// proofs makes and checks the addresses of callbacks.
func (c *Config) proofs() web.Proofs {
	return web.Proofs{Label: "plivo callback ", Secrets: c.AuthTokens}
}

// Config is one account.
type Config struct {
	Web web.Config
	// AuthID and AuthTokens are the account's. The first token authenticates requests; all of them
	// verify callbacks, and the proofs that the first one makes. To rotate the token, add the new one
	// as the second, then move it to the front.
	AuthID     string
	AuthTokens []string
	// MainTokens are the tokens of the main account, if AuthID is a subaccount: some callbacks are
	// signed with the main account's token alone.
	MainTokens []string
	// From is the sender of messages without one: a number, a short code or an alphanumeric sender.
	From string
	// Powerpack, if set, chooses the sender of messages without one.
	Powerpack string
	// Log is what Plivo stores of a message; empty is Plivo's default.
	Log string
	// Callback is the public URL of this channel; empty for none.
	Callback string
}

// address is the base of the API.
const address = "https://api.plivo.com/v1"

// logs are the values of log.
var logs = map[string]string{
	"true": "true", "false": "false", "number_only": "number_only", "content_only": "content_only",
}

// ParseSettings reads the settings of a channel:
//
//	auth_id                the account, MA..., or a subaccount, SA...
//	auth_token_file        file with its auth token, or a list of two while it is exchanged; the
//	                       first one signs in, and both verify callbacks
//	main_auth_token_file   the main account's token, or two, where auth_id is a subaccount
//	from                   sender of messages that name none
//	powerpack_uuid         chooses the sender of messages that name none
//	log                    what Plivo keeps of a message: true, false, number_only or content_only
//
// and those of web.ParseConfig. All faults are reported together, each under its key.
func ParseSettings(values map[string]any, o web.Environment) (Config, error) {
	r := settings.New(values, o.ReadFile)
	cfg := Config{
		Web:    web.ParseConfig(r, address),
		AuthID: r.Text("auth_id"), AuthTokens: web.Secrets(r, "auth_token_file", o.ReadFile),
		MainTokens: web.Secrets(r, "main_auth_token_file", o.ReadFile),
		From:       r.Text("from"), Powerpack: r.Text("powerpack_uuid"),
		Log:      settings.Choose(r, "log", logs),
		Callback: o.Callback,
	}
	r.RefuseUnknown()
	return cfg, web.JoinFaults(r.Err(), cfg.Validate())
}

var authID = regexp.MustCompile(`^[MS]A[0-9A-Z]{18}$`)

// Validate reports invalid settings, each fault under its key.
func (c *Config) Validate() error {
	faults := []error{c.Web.Validate()}
	if !authID.MatchString(c.AuthID) {
		faults = append(faults, errors.New("auth_id: is not MA or SA and 18 capitals and digits"))
	}
	if len(c.AuthTokens) == 0 {
		faults = append(faults, errors.New("auth_token_file: is missing"))
	}
	if c.From != "" && c.Powerpack != "" {
		faults = append(faults,
			errors.New("powerpack_uuid: stands beside from; only one of them can choose the sender"))
	}
	return errors.Join(faults...)
}
