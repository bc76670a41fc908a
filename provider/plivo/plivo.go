// Package plivo sends through Plivo's Message API, version 1, and reads its status callbacks and inbound
// messages.
//
// Plivo has no idempotency key, and its list of messages cannot be searched by a reference of ours. Instead the status
// callback of each message has an address of its own that names the submission, which signature V3 covers, so
// that a receipt can tell what became of a submission that nobody answered.
//
// Signature V2 covers neither the query nor the body. A callback that has no other is a hint that something
// happened to a message, and nothing that it says is believed: see Channel.ReadCallback.
package plivo

import (
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Channel is one Plivo account or subaccount.
type Channel struct {
	*web.Channel
	cfg Config
}

var _ web.Adapter = (*Channel)(nil)

// Open makes a channel of its settings.
func Open(values map[string]any, o web.Environment) (provider.Channel, error) {
	return web.Open(values, o, ParseSettings, New)
}

// New returns a channel; connections come up with the first submissions.
func New(cfg Config) *Channel {
	return &Channel{Channel: web.New(cfg.Web, newAPI(cfg, time.Now)), cfg: cfg}
}

// Capabilities are those of POST /Message/: message_expiry is at most 10 799 seconds, and of the many
// recipients that one call may have, each would get the same text, so that it carries one message.
func (c *Channel) Capabilities() provider.Capabilities {
	receipts := c.cfg.Callback != ""
	return provider.Capabilities{KeyInReceipt: receipts, Receipts: receipts, LongestValidity: longestValidity, Batch: 1}
}
