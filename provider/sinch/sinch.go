// Package sinch is the adapter for the SMS REST API of Sinch: /xms/v1 of the API description 1.0, with
// callbacks signed by HMAC as its release notes have it since 2025-02-13.
//
// It writes a message as a batch of one recipient, reads the answers, looks batches up by our reference and
// understands signed callbacks. Connections, deadlines and redaction are package provider/web's.
package sinch

import (
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// longestValidity is how long Sinch tries at most: expire_at may lie three days ahead.
const longestValidity = 72 * time.Hour

// Channel is one service plan.
type Channel struct {
	*web.Channel
	cfg Config
}

var (
	_ web.Adapter     = (*Channel)(nil)
	_ provider.Finder = (*Channel)(nil)
)

// Open makes a channel of its settings.
func Open(values map[string]any, o web.Environment) (provider.Channel, error) {
	return web.Open(values, o, ParseSettings, New)
}

// New returns a channel. The configuration is one that ParseSettings accepts.
func New(cfg Config) *Channel {
	return &Channel{Channel: web.New(cfg.Web, api{cfg}), cfg: cfg}
}

// Capabilities says what Sinch documents: delivery reports repeat the client_reference of the batch and batches
// can be listed by it. Nothing recognises a repeated submission.
func (c *Channel) Capabilities() provider.Capabilities {
	listens := c.cfg.listens()
	return provider.Capabilities{
		Lookup: true, KeyInReceipt: listens, Receipts: listens, LongestValidity: longestValidity, Batch: 1,
	}
}
