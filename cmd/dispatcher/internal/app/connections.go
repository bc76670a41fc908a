package app

import (
	"context"
	"errors"
	"reflect"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/provider"
	"dispatcher/provider/smpp"
	"dispatcher/provider/sms"
)

// connections are the open channels of the current routing. They are guarded by the reloader's mu.
type connections struct {
	connector connector
	// live has the settings of each connection. A channel that cannot be opened with its new
	// settings keeps its old connection if that can replace the new one (see serves), and is
	// unusable otherwise.
	live map[string]*config.Channel
	// troubles say why a channel could not be opened, by channel.
	troubles map[string]error
}

// transition is a change of connections that is not committed yet.
type transition struct {
	opened   map[string]provider.Channel // for the pipeline: new or in place of those it has
	live     map[string]*config.Channel
	troubles map[string]error
}

// change opens the channels that are new or whose connection changes. If one cannot be opened, the
// others are not affected. Nothing takes effect before commit.
func (c *connections) change(doc *config.Routing) *transition {
	t := &transition{
		opened:   map[string]provider.Channel{},
		live:     map[string]*config.Channel{},
		troubles: map[string]error{},
	}
	for i := range doc.Channels {
		channel := &doc.Channels[i]
		name := channel.Name
		old := c.live[name]
		if old != nil && sameConnection(old, channel) {
			t.live[name] = old
			continue
		}
		opened, err := c.connector.connect(channel)
		switch {
		case err == nil:
			t.opened[name], t.live[name] = opened, channel
			continue
		case old != nil && serves(old, channel):
			t.live[name] = old
		case old != nil, c.troubles[name] == nil:
			t.opened[name] = unusable{}
		}
		t.troubles[name] = err
	}
	return t
}

// unnameAccounts takes the accounts of channels that keep an old connection out of the routing.
// What is sent over it goes to the old account, so the new one is neither asked about it, nor is it
// repeated there.
func (t *transition) unnameAccounts(routing *decide.Routing) {
	for name := range t.troubles {
		if at := routing.Channel(name); at >= 0 && t.live[name] != nil {
			routing.Channels[at].Account = ""
		}
	}
}

// commit makes the transition current. From then on the pipeline owns the opened channels.
func (c *connections) commit(t *transition) {
	for name := range c.live {
		if t.live[name] == nil {
			c.connector.breakers.forget(name)
		}
	}
	c.live, c.troubles = t.live, t.troubles
}

// closeTimeout bounds the close of channels that never carried a message.
const closeTimeout = 2 * time.Second

// drop closes the opened channels of a transition that is not committed.
func (t *transition) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	for _, c := range t.opened {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}

// sameConnection reports whether a channel's connection can be kept: its provider, its settings and
// whether it asks for receipts are the same. Limits, policies, labels, prices, states and capacity
// need no new connection, because claims use the current routing.
func sameConnection(a, b *config.Channel) bool {
	return a.Provider == b.Provider && a.Test == b.Test && (Awaits(a) > 0) == (Awaits(b) > 0) &&
		reflect.DeepEqual(a.Settings, b.Settings)
}

// serves reports whether the connection made with old may replace one that cannot be made with
// channel. Each recorded choice must be derivable from the current routing, so the connection must
// bill as that routing says: the same kind of provider, both real or both a test, and the same
// segments for each text. Addresses, names, secrets and windows do not affect a choice.
func serves(old, channel *config.Channel) bool {
	before, okBefore := cutting(old)
	after, okAfter := cutting(channel)
	return old.Provider == channel.Provider && old.Test == channel.Test && okBefore && okAfter &&
		before == after
}

// cut is what the number of segments of a text depends on.
type cut struct {
	alphabet smpp.Alphabet
	long     smpp.LongMessages
	tables   sms.Tables
}

// cutting is the cut of a channel; false when its settings are invalid whatever its files contain.
func cutting(channel *config.Channel) (cut, bool) {
	if channel.Provider != "smpp" {
		return cut{}, true
	}
	cfg, err := smpp.ParseSettings(channel.Settings, substitutes(channel.Settings))
	return cut{cfg.Alphabet, cfg.LongMessages, cfg.Tables}, err == nil
}

// unusable replaces a channel whose settings cannot be used on this machine. It takes no messages.
type unusable struct{}

var _ provider.Channel = unusable{}

// misconfigured is why an unusable channel is not ready.
const misconfigured = provider.Misconfigured

// Send refuses: no byte leaves.
func (unusable) Send(context.Context, provider.Submission) provider.Result {
	return provider.Result{
		Outcome: provider.Refused,
		Code:    misconfigured,
		Err:     errors.New("the settings of the channel cannot be used on this machine"),
	}
}

// Ready is never true.
func (unusable) Ready() (ok bool, why string) { return false, misconfigured }

// Close does nothing.
func (unusable) Close(context.Context) error { return nil }
