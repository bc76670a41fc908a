package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/config"
	"dispatcher/provider"
	"dispatcher/provider/breaker"
	"dispatcher/provider/smpp"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
	"dispatcher/provider/web"
)

// connector makes connected channels from their part of the routing document.
type connector struct {
	secrets *config.SecretsFolder // of the files that settings name
	log     zerolog.Logger
	outages *outage.Log
	breaker func(channel string, to breaker.State) // told of each change
	sandbox *carriers
	// receipt takes the receipts of channels that expect any; see smpp.Config.OnReceipt.
	receipt func(channel string, r provider.Receipt, answer func(taken bool))
	// proof takes what proves that a channel was given a message and comes once; see smpp.Config.OnLate.
	proof func(channel string, r provider.Receipt)
	// sendTimeout is that of the pipeline.
	sendTimeout time.Duration
	// callback is where the provider of a channel is to call; see App.callback.
	callback func(*config.Channel) string
	// inbound takes the messages of subscribers; nil where nobody wants them.
	inbound func(channel string, in provider.Inbound) (taken bool)
}

// connect opens one channel: its adapter behind its breaker. It returns at once; the
// connections come up in the background.
func (c *connector) connect(channel *config.Channel) (provider.Channel, error) {
	health := newChannelHealth(channel.Name, c.log, c.outages)
	adapter, err := c.adapter(channel, health)
	if err != nil {
		return nil, fmt.Errorf("channel %s: %w", channel.Name, err)
	}
	return breaker.New(adapter, breaker.Config{
		Name: channel.Name, AnswerWithin: c.sendTimeout,
		OnChange: func(change breaker.Change) {
			c.breaker(channel.Name, change.To)
			health.breakerChanged(change)
		},
	}), nil
}

// adapter is the one visible list of provider kinds.
func (c *connector) adapter(channel *config.Channel, health *channelHealth) (provider.Channel, error) {
	if channel.Test {
		return testChannel{c.onReceipt(channel)}, nil
	}
	switch channel.Provider {
	case "smpp":
		return c.smpp(channel, channel.Settings, health)
	case "sandbox":
		address, err := c.sandbox.start(channel.Name)
		if err != nil {
			return nil, err
		}
		return c.smpp(channel, map[string]any{
			"address": address, "system_id": "sandbox", "window": sandboxWindow, "registered_delivery": "none",
		}, health)
	}
	if open := opener(channel.Provider); open != nil {
		return open(channel.Settings, web.Environment{ReadFile: c.secrets.Read, Callback: c.callback(channel)})
	}
	return nil, fmt.Errorf("provider %q is not known", channel.Provider)
}

func (c *connector) smpp(channel *config.Channel, settings map[string]any, health *channelHealth) (provider.Channel, error) {
	cfg, err := smpp.ParseSettings(settings, c.secrets.Read)
	if err != nil {
		return nil, err
	}
	cfg.SendTimeout = c.sendTimeout
	cfg.OnReceipt, cfg.Kind = c.onReceipt(channel), channel.Provider
	if cfg.OnReceipt == nil {
		cfg.RegisteredDelivery &^= pdu.ReceiptMask // nobody would book them
	}
	// A late answer is a proof whether receipts are expected or not.
	cfg.OnLate = func(r provider.Receipt) { c.proof(channel.Name, r) }
	if c.inbound != nil {
		cfg.OnInbound = func(in provider.Inbound) bool { return c.inbound(channel.Name, in) }
	}
	if words := Overlong(channel, c.sendTimeout); words != "" {
		c.log.Warn().Str("channel", channel.Name).Msg(words)
	}
	cfg.OnState = health.bindChanged
	return smpp.New(cfg)
}

// onReceipt is what takes the receipts of a channel; nil when none are expected.
func (c *connector) onReceipt(channel *config.Channel) func(r provider.Receipt, answer func(taken bool)) {
	if Awaits(channel) == 0 {
		return nil
	}
	return func(r provider.Receipt, answer func(taken bool)) { c.receipt(channel.Name, r, answer) }
}

// adapt fills in what the pipeline must know of a channel's adapter: how many submits
// it can have under way, which is what the windows of its binds hold or its connections carry, and how it cuts texts.
func adapt(channel *config.Channel, out *dispatch.Channel) {
	out.Concurrency, out.Segments, out.Cut = sandboxWindow, nil, nil
	switch {
	case channel.Provider == "sandbox":
		out.Cut = cutter(channel, smpp.Config{}) // its settings have nothing that decides that
		return
	case Webbed(channel.Provider):
		out.Concurrency, out.Segments = web.Concurrency(channel.Settings), counter(channel.Provider)
		return
	}
	cfg, err := smpp.ParseSettings(channel.Settings, standIn(channel.Settings))
	if err != nil {
		return // connect says what is wrong with them
	}
	out.Concurrency = max(cfg.Binds, 1) * cmp.Or(cfg.Window, smpp.DefaultWindow)
	out.Cut = cutter(channel, cfg)
	if cfg.Alphabet != smpp.GSM7 || cfg.LongMessages == smpp.UDH16 || !cfg.Tables.None() {
		out.Segments = cfg.Segments
	}
	if !cfg.Tables.None() {
		rules := sms.Rules{Tables: cfg.Tables}
		if cfg.LongMessages == smpp.UDH16 {
			rules.Reference = sms.Reference16
		}
		out.Substitute = rules.Substitute
	}
}

// cutter tells how an SMPP channel cuts texts of which parts have been taken; nil for one that sends nothing.
func cutter(channel *config.Channel, cfg smpp.Config) func(text string) string {
	if channel.Test {
		return nil
	}
	cfg.Kind = channel.Provider
	return cfg.Cut
}

// testChannel is a channel marked test: everything happens except the send.
type testChannel struct {
	receipt func(r provider.Receipt, answer func(taken bool)) // nil when nobody waits for one
}

var (
	_ provider.Channel = testChannel{}
	_ provider.Capable = testChannel{}
)

// Send accepts everything under a reference that nobody can take for a provider's, and says at once that it was
// delivered. The rest of a message of which a provider took parts is none of its business. A receipt that is not taken is not repeated: it stands for one that never comes.
func (t testChannel) Send(ctx context.Context, s provider.Submission) provider.Result {
	if ctx.Err() != nil {
		return provider.Result{Outcome: provider.Refused, Code: "ended", Err: ctx.Err()}
	}
	if s.Parts != nil {
		return provider.Result{Outcome: provider.Refused, Code: provider.Uncomposed, Err: errors.New("a test channel finishes no message that was begun on another")}
	}
	reference := fmt.Sprintf("test-%s-%d", s.ID, s.Attempt)
	if t.receipt != nil {
		t.receipt(provider.Receipt{Reference: reference, State: provider.Delivered, At: time.Now()}, func(bool) {})
	}
	return provider.Result{Outcome: provider.Accepted, Reference: reference}
}

// Capabilities are those of a provider that can do nothing but send receipts.
func (t testChannel) Capabilities() provider.Capabilities {
	return provider.Capabilities{Receipts: t.receipt != nil, Batch: 1}
}

// Ready is always true.
func (testChannel) Ready() (ok bool, why string) { return true, "" }

// Close has nothing to release.
func (testChannel) Close(context.Context) error { return nil }
