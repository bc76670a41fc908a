package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/config"
	"dispatcher/provider"
	"dispatcher/provider/aws"
	"dispatcher/provider/bird"
	"dispatcher/provider/breaker"
	"dispatcher/provider/httpapi"
	"dispatcher/provider/infobip"
	"dispatcher/provider/plivo"
	"dispatcher/provider/sinch"
	"dispatcher/provider/smpp"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/telnyx"
	"dispatcher/provider/twilio"
	"dispatcher/provider/vonage"
	"dispatcher/provider/web"
)

// openers are the adapters for HTTP APIs by their name in the routing document.
func openers() map[string]web.OpenFunc {
	return map[string]web.OpenFunc{
		"aws":     aws.Open,
		"bird":    bird.Open,
		"httpapi": httpapi.Open,
		"infobip": infobip.Open,
		"plivo":   plivo.Open,
		"sinch":   sinch.Open,
		"telnyx":  telnyx.Open,
		"twilio":  twilio.Open,
		"vonage":  vonage.Open,
	}
}

// opener is the adapter of a provider with an HTTP API; nil for the other providers.
func opener(provider string) web.OpenFunc { return openers()[provider] }

// Webbed reports whether a provider has an HTTP API. Its receipts then come by webhook.
func Webbed(provider string) bool { return opener(provider) != nil }

// counter returns how a vendor that splits texts itself counts segments; nil when the vendor uses
// only the alphabets of package sms.
func counter(provider string) func(text string) int {
	if provider == "telnyx" {
		return telnyx.Segments
	}
	return nil
}

// sandboxWindow is the window size of a channel to a sandbox carrier.
const sandboxWindow = 200

// reportedTimeout is how long the ledger may take to say which messages have a final receipt.
const reportedTimeout = 10 * time.Second

// connector opens channels by their part of the routing document.
type connector struct {
	secrets  *config.SecretsFolder // for the files that settings name
	log      zerolog.Logger
	outages  *outage.Log
	breakers *breakerMetrics // shows each change
	sandbox  *embedded.Carriers
	// receipt takes the receipts of channels that expect any; see smpp.Config.OnReceipt.
	receipt func(channel string, r provider.Receipt, answer func(taken bool))
	// proof takes late responses; see smpp.Config.OnLate.
	proof func(channel string, r provider.Receipt)
	// reported returns which references of a channel have a final receipt; may be nil.
	reported func(ctx context.Context, channel string, references []string) ([]string, error)
	// sendTimeout is the pipeline's timeout of a send.
	sendTimeout time.Duration
	// callback returns the address that the provider of a channel is to call; see App.callback.
	callback func(*config.Channel) string
	// inbound takes the messages of subscribers; may be nil.
	inbound func(channel string, in provider.Inbound) (taken bool)
}

// connect opens one channel: its adapter behind its breaker. It returns at once; connections are
// made in the background.
func (c *connector) connect(channel *config.Channel) (provider.Channel, error) {
	health := newChannelHealth(channel.Name, c.log, c.outages)
	adapter, err := c.adapter(channel, health)
	if err != nil {
		return nil, fmt.Errorf("channel %s: %w", channel.Name, err)
	}
	c.breakers.begin(channel.Name)
	return breaker.New(adapter, breaker.Config{
		Name: channel.Name, AnswerWithin: c.sendTimeout,
		OnChange: func(change breaker.Change) {
			c.breakers.set(channel.Name, change.To)
			health.breakerChanged(change)
		},
	}), nil
}

// adapter opens the adapter of a channel. It lists all kinds of providers.
func (c *connector) adapter(
	channel *config.Channel, health *channelHealth,
) (provider.Channel, error) {
	if channel.Test {
		return testChannel{c.onReceipt(channel)}, nil
	}
	switch channel.Provider {
	case "smpp":
		return c.smpp(channel, channel.Settings, health)
	case "sandbox":
		address, err := c.sandbox.Start(channel.Name)
		if err != nil {
			return nil, err
		}
		return c.smpp(channel, map[string]any{
			"address": address, "system_id": "sandbox", "window": sandboxWindow,
			"registered_delivery": "none",
		}, health)
	}
	if open := opener(channel.Provider); open != nil {
		return open(channel.Settings,
			web.Environment{ReadFile: c.secrets.Read, Callback: c.callback(channel)})
	}
	return nil, fmt.Errorf("provider %q is not known", channel.Provider)
}

func (c *connector) smpp(
	channel *config.Channel, settings map[string]any, health *channelHealth,
) (provider.Channel, error) {
	cfg, err := smpp.ParseSettings(settings, c.secrets.Read)
	if err != nil {
		return nil, err
	}
	cfg.SendTimeout = c.sendTimeout
	cfg.OnReceipt, cfg.Kind = c.onReceipt(channel), channel.Provider
	if cfg.OnReceipt == nil {
		cfg.RegisteredDelivery &^= pdu.ReceiptMask // nothing would store them
	}
	// A late response counts whether or not receipts are expected.
	cfg.OnLate = func(r provider.Receipt) { c.proof(channel.Name, r) }
	if c.reported != nil {
		cfg.Reported = func(ctx context.Context, references []string) ([]string, error) {
			ctx, cancel := context.WithTimeout(ctx, reportedTimeout)
			defer cancel()
			return c.reported(ctx, channel.Name, references)
		}
	}
	if c.inbound != nil {
		cfg.OnInbound = func(in provider.Inbound) bool { return c.inbound(channel.Name, in) }
	}
	if words := Overlong(channel, c.sendTimeout); words != "" {
		c.log.Warn().Str("channel", channel.Name).Msg(words)
	}
	if _, given := settings[smpp.IgnoredValidity]; given {
		c.log.Warn().Str("channel", channel.Name).Msg("the setting validity has no effect: " +
			"messages without expires_at are valid for the ttl of their lane")
	}
	cfg.OnState = health.bindChanged
	return smpp.New(cfg)
}

// onReceipt takes the receipts of a channel; nil when none are expected.
func (c *connector) onReceipt(
	channel *config.Channel,
) func(r provider.Receipt, answer func(taken bool)) {
	if Awaits(channel) == 0 {
		return nil
	}
	return func(r provider.Receipt, answer func(taken bool)) { c.receipt(channel.Name, r, answer) }
}

// testChannel is a channel marked test: everything happens except the send.
type testChannel struct {
	receipt func(r provider.Receipt, answer func(taken bool)) // nil when no receipts are expected
}

var (
	_ provider.Channel = testChannel{}
	_ provider.Capable = testChannel{}
)

// Send accepts every message, with a reference that cannot be mistaken for a provider's, and at
// once sends a receipt that it was delivered. It refuses the rest of a message of which a provider
// took parts. A receipt that is not taken is not repeated.
func (t testChannel) Send(ctx context.Context, s provider.Submission) provider.Result {
	if ctx.Err() != nil {
		return provider.Result{Outcome: provider.Refused, Code: "ended", Err: ctx.Err()}
	}
	if s.Parts != nil {
		return provider.Result{
			Outcome: provider.Refused,
			Code:    provider.Uncomposed,
			Err:     errors.New("a test channel finishes no message that was begun on another"),
		}
	}
	reference := fmt.Sprintf("test-%s-%d", s.ID, s.Attempt)
	if t.receipt != nil {
		t.receipt(provider.Receipt{Reference: reference, State: provider.Delivered, At: time.Now()},
			func(bool) {})
	}
	return provider.Result{Outcome: provider.Accepted, Reference: reference}
}

// Capabilities are receipts, if any are expected, and nothing else.
func (t testChannel) Capabilities() provider.Capabilities {
	return provider.Capabilities{Receipts: t.receipt != nil}
}

// Ready is always true.
func (testChannel) Ready() (ok bool, why string) { return true, "" }

// Close does nothing.
func (testChannel) Close(context.Context) error { return nil }
