// Package vonage is the adapter for Vonage, which was Nexmo: the Messages API v1 (description 1.20) and the older
// SMS API (description 1.0).
//
// It writes submissions as requests, reads the answers, and understands callbacks: those of the Messages API are
// signed by a JWT over the hash of the body, those of the SMS API by an HMAC over their parameters.
// Connections, deadlines and redaction are package provider/web's.
package vonage

import (
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

// Both APIs take a time to live of 20 seconds to 7 days.
const (
	shortestValidity = 20 * time.Second
	longestValidity  = 7 * 24 * time.Hour
)

// Channel is an account or an application at Vonage.
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
	var api web.API = newMessages(cfg)
	if cfg.API == SMS {
		api = shortMessages{cfg}
	}
	return &Channel{Channel: web.New(cfg.Web, api), cfg: cfg}
}

// Capabilities says what this adapter uses: receipts return our reference (client_ref, client-ref). Neither API is
// documented to recognise a repeated submission. The SMS API has an id and receipts for each part of a text. Reports, which may tell of a message later, are not asked.
func (c *Channel) Capabilities() provider.Capabilities {
	listens := c.cfg.listens()
	return provider.Capabilities{
		KeyInReceipt: listens, Receipts: listens, PartReceipts: c.cfg.API == SMS, LongestValidity: longestValidity, Batch: 1,
	}
}

// ReadCallback returns what a status, a delivery receipt or an inbound message says.
func (c *Channel) ReadCallback(callback *provider.Callback) (provider.CallbackContent, error) {
	if c.cfg.API == SMS {
		return c.cfg.hearReceipt(callback)
	}
	return c.cfg.hearStatus(callback)
}

// lifetime is what is left until the validity ends, within what Vonage takes; zero leaves it to Vonage.
func lifetime(validity, now time.Time) time.Duration {
	if validity.IsZero() {
		return 0
	}
	return min(max(validity.Sub(now), shortestValidity), longestValidity)
}
