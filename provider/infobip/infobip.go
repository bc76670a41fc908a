// Package infobip is the adapter for Infobip's SMS API: /sms/3/messages and /sms/3/logs of the API description 3.210.
//
// It writes submissions under ids of our own, reads the answers, looks messages up in the logs by those ids and
// understands delivery reports and inbound messages. Connections, deadlines and redaction are package
// provider/web's.
package infobip

import (
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// longestValidity is what Infobip takes: longer ones it sets to 48 hours by itself.
const longestValidity = 48 * time.Hour

// Channel is an account at Infobip.
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

// Capabilities says what Infobip documents: the id of a message may be ours, logs can be asked for it, and reports
// return it. A second message under the same id is rejected (REJECTED_DUPLICATE_MESSAGE_ID), but for how long
// Infobip remembers ids is not said, so that nothing is promised.
func (c *Channel) Capabilities() provider.Capabilities {
	listens := c.cfg.listens()
	return provider.Capabilities{
		Lookup: true, KeyInReceipt: listens, Receipts: listens, LongestValidity: longestValidity, Batch: 1,
	}
}
