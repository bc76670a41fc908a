// Package bird is the adapter for Bird, formerly MessageBird: the SMS messages endpoint of its REST
// API (rest.messagebird.com, as documented for the client libraries of version 8), and the newer
// Channels API (api.bird.com).
//
// It writes submissions as requests, reads answers, and verifies and reads callbacks. Package
// provider/web makes the connections. Nothing here retries.
package bird

import (
	"regexp"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/settings"
	"dispatcher/provider/web"
)

// longestValidity is the default of the messages endpoint, and the longest that is documented.
const longestValidity = 48 * time.Hour

// Channel is an account at Bird.
type Channel struct {
	*web.Channel
	cfg Config
}

var _ web.Adapter = (*Channel)(nil)

// Open opens a channel from its settings.
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

// Capabilities are those that Bird documents. Neither API recognises a repeated submission or lists
// messages by reference. Both return our reference: the status report in its query, an event within
// the message.
func (c *Channel) Capabilities() provider.Capabilities {
	receipts := c.cfg.acceptsCallbacks()
	return provider.Capabilities{Receipts: receipts, KeyInReceipt: receipts}
}

// ReadCallback returns the content of a status report, an event or a forwarded message.
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

// API is one of the interfaces that Bird offers.
type API uint8

const (
	// Messages is the SMS messages endpoint of the MessageBird REST API.
	Messages API = iota
	// Channels is the Channels API of Bird.
	Channels
)

// Base addresses of the APIs.
const (
	messagesBase = "https://rest.messagebird.com"
	channelsBase = "https://api.bird.com"
)

// Config is an account at Bird.
type Config struct {
	API       API
	AccessKey string
	// SigningKeys verify callbacks. Without one every callback is refused and none is requested.
	SigningKeys []string
	// From is the sender of messages without one.
	From string
	// Workspace and Channel are the ids in the addresses of the Channels API.
	Workspace, Channel string
	// Callback is the public URL for status reports; empty for none.
	Callback string
	Web      web.Config
}

// ParseSettings reads the settings of a channel; all faults are reported together, each under its
// key.
//
//	api                 messages (default): the SMS endpoint of the MessageBird REST API; or
//	                    channels: Bird's Channels API
//	access_key_file     file with the access key
//	signing_key_files   file with the key that signs callbacks, or a list of two while it is rotated
//	from                sender of messages that name none
//	workspace, channel  ids of the workspace and of its SMS channel; with api: channels
//
// and those of web.ParseConfig.
func ParseSettings(values map[string]any, o web.Environment) (Config, error) {
	r := settings.New(values, o.ReadFile)
	cfg := Config{
		API: settings.Choose(r, "api",
			map[string]API{"messages": Messages, "channels": Channels}),
		AccessKey:   web.Secret(r, "access_key_file"),
		SigningKeys: web.Secrets(r, "signing_key_files", o.ReadFile),
		From:        r.Text("from"),
		Workspace:   r.Text("workspace"),
		Channel:     r.Text("channel"),
		Callback:    o.Callback,
	}
	base := messagesBase
	if cfg.API == Channels {
		base = channelsBase
	}
	cfg.Web = web.ParseConfig(r, base)
	cfg.check(r)
	r.RefuseUnknown()
	return cfg, web.JoinFaults(r.Err(), cfg.Web.Validate())
}

// id matches a UUID, the form of the ids in addresses of the Channels API.
var id = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (c *Config) check(r *settings.Reader) {
	if c.AccessKey == "" {
		r.Failf("access_key_file", "is missing")
	}
	for key, value := range map[string]string{"workspace": c.Workspace, "channel": c.Channel} {
		switch {
		case c.API == Messages && value != "":
			r.Failf(key, "belongs to api: channels")
		case c.API == Channels && !id.MatchString(value):
			r.Failf(key, "is not an id such as a1405560-c8d3-4b1a-877d-3f449ad95352")
		}
	}
}

// acceptsCallbacks reports whether callbacks can be verified.
func (c *Config) acceptsCallbacks() bool { return len(c.SigningKeys) > 0 && c.Callback != "" }
