// Package sinch is the adapter for the SMS REST API of Sinch: /xms/v1 of the API description 1.0,
// with callbacks signed by HMAC, as in its release notes since 2025-02-13.
//
// It writes a message as a batch of one recipient, reads the answers, looks batches up by our
// reference and understands signed callbacks. Package provider/web handles connections, deadlines
// and redaction.
package sinch

import (
	"regexp"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

// longestValidity is less than Sinch's maximum: expire_at may be three days ahead by Sinch's clock.
const longestValidity = 72*time.Hour - web.Tolerance

// lookupFor is less than the 24 hours of batches that Sinch lists.
const lookupFor = 23 * time.Hour

// Channel is one service plan.
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

// Capabilities are those that Sinch documents: delivery reports return the client_reference of the
// batch, and batches can be listed by it. A repeated submission is not recognised.
func (c *Channel) Capabilities() provider.Capabilities {
	receipts := c.cfg.acceptsCallbacks()
	return provider.Capabilities{LookupFor: lookupFor, KeyInReceipt: receipts, Receipts: receipts}
}

// Config is a service plan at Sinch.
type Config struct {
	Web web.Config
	// Plan is the id of the service plan, and Token its API token.
	Plan, Token string
	// From is the sender of messages without one; empty leaves it to the service plan.
	From string
	// Secrets verify callbacks. Without one every callback is refused and none is requested.
	Secrets []string
	// AbsenceIsCertain treats a lookup without a result as proof that Sinch has not taken the
	// message.
	AbsenceIsCertain bool
	// Callback is the public URL for delivery reports; empty for none.
	Callback string
}

// ParseSettings reads the settings of a channel; all faults are reported together, each under its
// key.
//
//	service_plan_id        id of the service plan
//	token_file             file with its API token
//	region                 us (default), eu, au, br or ca: where the service plan lives
//	from                   sender of messages that name none
//	callback_secret_files  file with the HMAC secret of callbacks, or a list of two while it is
//	                       exchanged; without it delivery reports are neither requested nor accepted
//	absence_is_certain     true treats a lookup without a result as "not taken". By default such a
//	                       lookup decides nothing, because Sinch does not say how soon a batch can be
//	                       found
//
// and those of web.ParseConfig.
func ParseSettings(values map[string]any, o web.Environment) (Config, error) {
	r := settings.New(values, o.ReadFile)
	region := settings.Choose(r, "region", regions)
	if region == "" {
		region = "us"
	}
	cfg := Config{
		Web:              web.ParseConfig(r, "https://"+region+".sms.api.sinch.com"),
		Plan:             r.Text("service_plan_id"),
		Token:            web.Secret(r, "token_file"),
		From:             r.Text("from"),
		Secrets:          web.Secrets(r, "callback_secret_files", o.ReadFile),
		AbsenceIsCertain: r.Flag("absence_is_certain"),
		Callback:         o.Callback,
	}
	if !planID.MatchString(cfg.Plan) {
		r.Failf("service_plan_id", "is not an id of letters and digits")
	}
	if cfg.Token == "" {
		r.Failf("token_file", "is missing")
	}
	r.RefuseUnknown()
	return cfg, web.JoinFaults(r.Err(), cfg.Web.Validate())
}

var regions = map[string]string{"us": "us", "eu": "eu", "au": "au", "br": "br", "ca": "ca"}

// planID allows only characters that need no escape, because the id is part of every path.
var planID = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)

// acceptsCallbacks reports whether callbacks are requested and can be verified.
func (c *Config) acceptsCallbacks() bool { return c.Callback != "" && len(c.Secrets) > 0 }
