// Package telnyx sends through the Telnyx Messaging API v2 and reads its webhooks.
//
// Telnyx documents no idempotency key for messages (its Idempotency-Key is for endpoints that declare it), no validity, and
// no search by a reference of ours: a message can be read by its own id only. Instead each message brings along a webhook URL
// of its own that names the submission, and events repeat it within what Telnyx signs, so that a receipt can tell what
// became of a submission that nobody answered.
package telnyx

import (
	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Channel is one Telnyx messaging profile, or one number of it.
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
func New(cfg Config) *Channel { return &Channel{Channel: web.New(cfg.Web, newAPI(cfg)), cfg: cfg} }

// Capabilities are those of POST /v2/messages, which makes one message and takes no validity.
func (c *Channel) Capabilities() provider.Capabilities {
	receipts := c.cfg.receipts()
	return provider.Capabilities{KeyInReceipt: receipts, Receipts: receipts, Batch: 1}
}
