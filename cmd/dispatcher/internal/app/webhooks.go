package app

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/config"
	"dispatcher/provider"
)

// openWebhooks opens the address that providers call, before channels are connected: those on this machine are told
// the address that it got. Callbacks are answered from serveWebhooks on.
func (a *App) openWebhooks(ctx context.Context, channels receive.Channels, booker receive.Booker) error {
	s := &a.opts.Settings
	secure, err := receive.TLSFiles{
		Certificate: s.ReceiptsTLSCertFile, Key: s.ReceiptsTLSKeyFile, ClientAuthorities: s.ReceiptsTLSClientCAFile,
	}.Config()
	if err != nil {
		return err
	}
	a.webhooks, err = receive.ListenWebhooks(ctx, receive.WebhookConfig{
		Address: s.ReceiptsListen, PublicURL: strings.TrimRight(s.PublicURL, "/"), TLS: secure,
		Channels: channels, Booker: booker, Registry: a.registry, Trouble: a.trouble,
	})
	if err != nil {
		return err
	}
	// After the pipeline, which they outlive: what it has sent may be delivered while it ends.
	a.stopper.add("webhooks", a.stopWebhooks)
	return nil
}

// booker books what callbacks say.
type booker struct {
	receipts *receive.Batcher
	// inbound books messages of subscribers; nil loses none but takes none.
	inbound interface {
		Book(ctx context.Context, channel string, in []provider.Inbound) error
	}
}

var _ receive.Booker = booker{}

// Book returns nil once all of it is durable.
func (b booker) Book(ctx context.Context, channel string, heard *provider.CallbackContent) error {
	if len(heard.Receipts) > 0 {
		if err := b.receipts.Book(ctx, channel, heard.Receipts); err != nil {
			return err
		}
	}
	switch {
	case len(heard.Inbound) == 0:
		return nil
	case b.inbound == nil:
		return errNoInbound
	}
	return b.inbound.Book(ctx, channel, heard.Inbound)
}

// errNoInbound keeps messages of subscribers with their providers.
var errNoInbound = errors.New("messages of subscribers cannot be booked")

// webhooksPatience bounds the end of the webhooks: what is not booked by then is called for again.
const webhooksPatience = 2 * time.Second

// serveWebhooks begins to answer callbacks.
func (a *App) serveWebhooks() {
	a.webhooks.Serve()
	a.log.Info().Str("address", a.webhooks.URL()).Str("public_url", a.opts.Settings.PublicURL).Msg("webhooks are listening")
}

func (a *App) stopWebhooks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, webhooksPatience)
	defer cancel()
	return a.webhooks.Close(ctx)
}

// callback is the address at which the provider of a channel is to call; empty when it cannot reach this
// process. Without a public URL only an API on this machine can, such as that of a sandbox.
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
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(base.Hostname())
	return base.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}
