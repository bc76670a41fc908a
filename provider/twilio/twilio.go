// Package twilio sends through Twilio's Programmable Messaging API, version 2010-04-01, and reads its status
// callbacks and inbound messages.
//
// Twilio has no idempotency key and cannot be searched by a reference of ours: the list of messages filters by
// numbers and dates only, and shows nothing that a submission brought along but the text. Instead the
// status callback of each message has an address of its own that names the submission, and Twilio signs the
// address it calls, so that a receipt can tell what became of a submission that nobody answered.
package twilio

import (
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Channel is one Twilio account, or one of its messaging services.
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

// Capabilities are those of the Message resource: ValidityPeriod is at most 36 000 seconds
// (error 90007), and one call creates one message.
func (c *Channel) Capabilities() provider.Capabilities {
	receipts := c.cfg.receipts()
	return provider.Capabilities{KeyInReceipt: receipts, Receipts: receipts, LongestValidity: longestValidity, Batch: 1}
}
