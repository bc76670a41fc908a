package app

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/inbound"
	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/config"
	"dispatcher/provider"
)

// openWebhooks listens on the address that providers call. It is called before channels are
// connected, because channels on this machine need the port. Callbacks are answered once
// serveWebhooks is called.
func (a *App) openWebhooks(ctx context.Context, recorder receive.Recorder) error {
	s := &a.opts.Settings
	secure, err := receive.TLSFiles{
		Certificate: s.ReceiptsTLSCertFile, Key: s.ReceiptsTLSKeyFile,
		ClientAuthorities: s.ReceiptsTLSClientCAFile,
	}.Config()
	if err != nil {
		return err
	}
	a.webhooks, err = receive.ListenWebhooks(ctx, receive.WebhookConfig{
		Address: s.ReceiptsListen, PublicURL: strings.TrimRight(s.PublicURL, "/"), TLS: secure,
		Channels: &a.reloader.listeners, Recorder: recorder, Registry: a.registry, Trouble: a.trouble,
	})
	if err != nil {
		return err
	}
	// Stopped after the pipeline: receipts may come for what it sends while it stops.
	a.stopper.add("webhooks", a.stopWebhooks)
	return nil
}

// contentStore stores the receipts and inbound messages of callbacks.
type contentStore struct {
	receipts *receive.Batcher
	inbound  *inbound.Intake
}

var _ receive.Recorder = contentStore{}

// Record returns nil once all of the content is durable.
func (c contentStore) Record(
	ctx context.Context, channel string, content *provider.CallbackContent,
) error {
	if len(content.Receipts) > 0 {
		if err := c.receipts.Record(ctx, channel, content.Receipts); err != nil {
			return err
		}
	}
	if len(content.Inbound) == 0 {
		return nil
	}
	return c.inbound.Record(ctx, channel, content.Inbound)
}

// webhooksTimeout bounds the stop of the webhooks. A provider repeats a call without an answer.
const webhooksTimeout = 2 * time.Second

// serveWebhooks starts to answer callbacks.
func (a *App) serveWebhooks() {
	a.webhooks.Serve()
	a.log.Info().
		Str("address", a.webhooks.URL()).
		Str("public_url", a.opts.Settings.PublicURL).
		Msg("webhooks are listening")
}

func (a *App) stopWebhooks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, webhooksTimeout)
	defer cancel()
	return a.webhooks.Close(ctx)
}

// callback is the address that the provider of a channel gets for its callbacks; empty when the
// provider cannot reach this process. Without a public URL only an API on this machine can, such as
// a sandbox.
func (a *App) callback(channel *config.Channel) string {
	if a.opts.Settings.PublicURL == "" && !Local(channel) {
		return ""
	}
	return a.webhooks.Callback(channel.Name)
}

// Local reports whether the API of a channel is on this machine.
func Local(channel *config.Channel) bool {
	text, _ := channel.Settings["base_url"].(string)
	base, err := url.Parse(text)
	return err == nil && access.IsLoopback(base.Hostname())
}

// webhookListeners are the channels of the current routing whose providers send callbacks. A change
// replaces all of them at once. The zero value has none.
type webhookListeners struct {
	// set has nil for a channel whose settings cannot be used on this machine.
	set atomic.Pointer[map[string]provider.CallbackReader]
}

var _ receive.Channels = (*webhookListeners)(nil)

// Listener reads the callbacks of a channel.
func (wl *webhookListeners) Listener(channel string) (l provider.CallbackReader, known bool) {
	if set := wl.set.Load(); set != nil {
		l, known = (*set)[channel]
	}
	return l, known
}

// change replaces the listeners by those of a transition's channels, and returns how to undo that.
func (wl *webhookListeners) change(t *transition) (undo func()) {
	before := wl.set.Load()
	next := map[string]provider.CallbackReader{}
	keep := func(name string) {
		if before != nil && t.opened[name] == nil {
			if l, known := (*before)[name]; known {
				next[name] = l
			}
		}
	}
	for name := range t.live {
		keep(name)
	}
	for name := range t.troubles { // a channel that is still unusable keeps its nil
		keep(name)
	}
	for name, opened := range t.opened {
		if l, ok := listenerOf(opened); ok {
			next[name] = l
		}
	}
	wl.set.Store(&next)
	return func() { wl.set.Store(before) }
}

// listenerOf is the listener of an opened channel; false when its provider sends no callbacks.
func listenerOf(opened provider.Channel) (l provider.CallbackReader, ok bool) {
	if _, broken := opened.(unusable); broken {
		return nil, true
	}
	if h, asks := opened.(interface{ ReadsCallbacks() bool }); asks && !h.ReadsCallbacks() {
		return nil, false
	}
	l, ok = opened.(provider.CallbackReader)
	return l, ok
}
