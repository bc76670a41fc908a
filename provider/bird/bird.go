// Package bird is the adapter for Bird, which was MessageBird: the SMS messages endpoint of its REST API
// (rest.messagebird.com, as documented for the client libraries of version 8), and the newer Channels API
// (api.bird.com).
//
// It writes submissions as requests, reads answers, verifies who calls back and reads what was said. It knows
// no connections: package provider/web has them. Nothing here retries.
package bird

import (
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// longestValidity is what the messages endpoint keeps a message by default, and the longest that is
// documented for it.
const longestValidity = 48 * time.Hour

// Channel is an account at Bird.
type Channel struct {
	*web.Channel
	cfg Config
}

var _ web.Adapter = (*Channel)(nil)

// Open makes a channel of its settings.
func Open(values map[string]any, o web.Environment) (provider.Channel, error) {
	return web.Open(values, o, ParseSettings, New)
}

// New returns a channel. The configuration is one that ParseSettings accepts.
func New(cfg Config) *Channel {
	var api web.API = messages{cfg}
	if cfg.API == Channels {
		api = channels{cfg}
	}
	return &Channel{Channel: web.New(cfg.Web, api), cfg: cfg}
}

// Capabilities says what Bird documents. Neither API recognises a repeated submission or lists messages by
// reference. Both return our reference: the status report in its query, an event within the message. Only the
// messages endpoint takes a validity. The messages endpoint takes 50 recipients a call, but with one text.
func (c *Channel) Capabilities() provider.Capabilities {
	listens := c.cfg.listens()
	promised := provider.Capabilities{Batch: 1, Receipts: listens, KeyInReceipt: listens}
	if c.cfg.API == Messages {
		promised.LongestValidity = longestValidity
	}
	return promised
}

// ReadCallback returns what a status report, an event or a forwarded message says.
func (c *Channel) ReadCallback(callback *provider.Callback) (provider.CallbackContent, error) {
	once, err := c.cfg.verify(callback)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	read := readReport
	if c.cfg.API == Channels {
		read = readEvent
	}
	content, err := read(callback)
	if err != nil {
		return provider.CallbackContent{}, err
	}
	content.ReplayID = once
	return content, nil
}
