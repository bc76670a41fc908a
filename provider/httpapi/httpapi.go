// Package httpapi is the adapter for gateways that have no adapter of their own: the routing document describes their
// HTTP API, and this package follows the description.
//
// A description says how a submission is written (method, address, fields), where the id and the error stand in an answer,
// which answers mean what, who may call back, and where a receipt or a subscriber's message has its fields. It is checked
// when it is applied. Fields are built by structure, not by pasting text together: a value is escaped for the place
// where it stands, so that no message text can become anything else.
//
// Looking up submissions, several messages in one call and signatures of requests are beyond it; a gateway that needs
// them deserves a package.
package httpapi

import (
	"context"
	"errors"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Channel is an account at a gateway.
type Channel struct {
	*web.Channel
	cfg Config
}

var (
	_ web.Adapter = (*Channel)(nil)
	_ web.API     = api{}
)

// api writes and reads as the description says.
type api struct{ cfg *Config }

// Open makes a channel of its settings.
func Open(values map[string]any, o web.Environment) (provider.Channel, error) {
	return web.Open(values, o, ParseSettings, New)
}

// New returns a channel. The configuration is one that ParseSettings made.
func New(cfg Config) *Channel {
	c := &Channel{cfg: cfg}
	c.Channel = web.New(cfg.Web, api{&c.cfg})
	return c
}

// errNoKey says that a gateway without ids was given a submission that nothing could be traced by.
var errNoKey = errors.New("the gateway gives no id, and the submission has no key")

// Send submits a message with one request. Where the gateway gives no id, the submission's own key is the reference.
func (c *Channel) Send(ctx context.Context, s provider.Submission) provider.Result {
	r := c.Channel.Send(ctx, s)
	if r.Outcome != provider.Accepted || c.cfg.answer.id != nil {
		return r
	}
	if s.Key == "" {
		return provider.Result{Outcome: provider.Unknown, Code: "no_key", Err: errNoKey}
	}
	r.Reference = s.Key
	return r
}

// Capabilities are what the description claims of the gateway.
func (c *Channel) Capabilities() provider.Capabilities {
	listens := c.cfg.receipts != nil && c.cfg.Callback != ""
	return provider.Capabilities{
		SameKeyFor: c.cfg.SameKeyFor, LongestValidity: c.cfg.LongestValidity, Batch: 1,
		Receipts: listens, KeyInReceipt: listens && c.cfg.receipts.key != nil,
	}
}
