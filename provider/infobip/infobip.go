// Package infobip is the adapter for Infobip's SMS API: /sms/3/messages and /sms/3/logs of the API
// description 3.210.
//
// It writes submissions under ids of our own, reads the answers, looks messages up in the logs by
// those ids and understands delivery reports and inbound messages. Package provider/web handles
// connections, deadlines and redaction.
package infobip

import (
	"net/textproto"
	"slices"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

const (
	// longestValidity is Infobip's maximum, to which it shortens longer validities.
	longestValidity = 48 * time.Hour
	// lookupFor is less than the 48 hours that the logs cover.
	lookupFor = 47 * time.Hour
)

// Channel is an account at Infobip.
type Channel struct {
	*web.Channel
	cfg Config
}

var (
	_ web.Adapter     = (*Channel)(nil)
	_ provider.Finder = (*Channel)(nil)
)

// Open opens a channel from its settings.
func Open(values map[string]any, o web.Environment) (provider.Channel, error) {
	return web.Open(values, o, ParseSettings, New)
}

// New returns a channel. The configuration is one that ParseSettings accepts.
func New(cfg Config) *Channel {
	return &Channel{Channel: web.New(cfg.Web, api{cfg}), cfg: cfg}
}

// Capabilities are those that Infobip documents: we may choose the id of a message, logs can be
// searched for it, and reports return it. A second message with the same id is rejected
// (REJECTED_DUPLICATE_MESSAGE_ID), but Infobip does not say how long it remembers ids, so
// SameKeyFor stays zero.
func (c *Channel) Capabilities() provider.Capabilities {
	receipts := c.cfg.acceptsCallbacks()
	return provider.Capabilities{LookupFor: lookupFor, KeyInReceipt: receipts, Receipts: receipts}
}

// Auth is how callbacks are authenticated. Infobip signs nothing: it calls the configured address
// with the configured credentials.
type Auth uint8

const (
	// ByURL checks a proof in the address: each message has an address that nobody else knows.
	ByURL Auth = iota + 1
	// ByBasic checks a user and a password (RFC 7617).
	ByBasic
	// ByHeader checks a secret in a header field.
	ByHeader
	// ByCertificate requires a client certificate that the listener has verified.
	ByCertificate
)

var auths = map[string]Auth{
	"url": ByURL, "basic": ByBasic, "header": ByHeader, "certificate": ByCertificate,
}

// Config is an account at Infobip.
type Config struct {
	Web web.Config
	// Key is the API key.
	Key string
	// From is the sender of messages without one; empty leaves it to the account.
	From string
	// Auths are the accepted ways to authenticate callbacks; one is enough. Without one every
	// callback is refused and none is requested.
	Auths []Auth
	// Secrets are the valid secrets of callbacks; the first makes the proofs in addresses.
	Secrets []string
	// User is for ByBasic, and Header, a canonical name, for ByHeader.
	User, Header string
	// AbsenceIsCertain treats a lookup without a result as proof that Infobip has not taken the
	// message.
	AbsenceIsCertain bool
	// Callback is the public URL for delivery reports; empty for none.
	Callback string
}

// ParseSettings reads the settings of a channel; all faults are reported together, each under its
// key.
//
//	api_key_file           file with the API key
//	from                   sender of messages that name none
//	callback_auth          how callbacks prove themselves: url, basic, header, certificate, or a
//	                       list, of which one is enough. The default is url if there are secrets;
//	                       without any way, delivery reports are neither requested nor accepted
//	callback_secret_files  file with the secret of callbacks, or a list of two while it is exchanged,
//	                       the new one first
//	callback_user          user of basic
//	callback_header        name of the header field that holds the secret
//	absence_is_certain     true treats a lookup without a result as "not taken". By default such a
//	                       lookup decides nothing, because Infobip does not say how soon its logs
//	                       show a message
//
// and those of web.ParseConfig. base_url is required, because each account has its own address.
func ParseSettings(values map[string]any, o web.Environment) (Config, error) {
	r := settings.New(values, o.ReadFile)
	cfg := Config{
		Web:              web.ParseConfig(r, ""),
		Key:              web.Secret(r, "api_key_file"),
		From:             r.Text("from"),
		Secrets:          web.Secrets(r, "callback_secret_files", o.ReadFile),
		User:             r.Text("callback_user"),
		Header:           textproto.CanonicalMIMEHeaderKey(r.Text("callback_header")),
		AbsenceIsCertain: r.Flag("absence_is_certain"),
		Callback:         o.Callback,
	}
	cfg.Auths = readAuths(r, len(cfg.Secrets) > 0)
	if cfg.Key == "" {
		r.Failf("api_key_file", "is missing")
	}
	cfg.checkAuths(r)
	r.RefuseUnknown()
	return cfg, web.JoinFaults(r.Err(), cfg.Web.Validate())
}

func readAuths(r *settings.Reader, secret bool) []Auth {
	words := r.Texts("callback_auth")
	if len(words) == 0 && secret {
		return []Auth{ByURL}
	}
	var list []Auth
	for _, word := range words {
		auth, ok := auths[word]
		if !ok {
			r.Failf("callback_auth", "%q is none of basic, certificate, header, url", word)
			continue
		}
		list = append(list, auth)
	}
	return list
}

// checkAuths requires the settings that each way needs, and refuses those that none uses.
func (c *Config) checkAuths(r *settings.Reader) {
	basic, header := c.by(ByBasic), c.by(ByHeader)
	switch needed := basic || header || c.by(ByURL); {
	case needed && len(c.Secrets) == 0:
		r.Failf("callback_secret_files", "is missing")
	case !needed && len(c.Secrets) > 0:
		r.Failf("callback_secret_files", "is not used by callback_auth")
	}
	if basic != (c.User != "") {
		r.Failf("callback_user", "goes with callback_auth: basic, which needs it")
	}
	if header != (c.Header != "") {
		r.Failf("callback_header", "goes with callback_auth: header, which needs it")
	}
}

func (c *Config) by(auth Auth) bool { return slices.Contains(c.Auths, auth) }

// acceptsCallbacks reports whether callbacks are requested and can be verified.
func (c *Config) acceptsCallbacks() bool { return c.Callback != "" && len(c.Auths) > 0 }
