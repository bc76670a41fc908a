package app

import (
	"context"
	"errors"
	"reflect"
	"time"

	"dispatcher/config"
	"dispatcher/provider"
	"dispatcher/provider/smpp"
	"dispatcher/provider/sms"
)

// connections are what the channels of the routing in force run on. They are guarded by the
// reloader's mu.
type connections struct {
	connector connector
	// live holds what each connection was made of. A channel that cannot be connected as the routing
	// in force wants it stays connected as it was before, if that may carry what is planned under this routing, and
	// is unusable otherwise; see serves.
	live map[string]*config.Channel
	// troubles say why, by channel.
	troubles map[string]error
}

// transition is a change of connections on its way.
type transition struct {
	opened   map[string]provider.Channel // for the pipeline: new or in place of those it has
	live     map[string]*config.Channel
	troubles map[string]error
}

// change opens the channels that are new or whose connection changes. What cannot be opened is a
// trouble of that channel, and of no other. Nothing else happens before commit.
func (c *connections) change(doc *config.Routing) *transition {
	t := &transition{opened: map[string]provider.Channel{}, live: map[string]*config.Channel{}, troubles: map[string]error{}}
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

// commit makes the transition what is; the pipeline owns the opened channels then.
func (c *connections) commit(t *transition) { c.live, c.troubles = t.live, t.troubles }

// closePatience bounds the end of channels that never carried a message.
const closePatience = 2 * time.Second

// drop closes what was opened in vain.
func (t *transition) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	var errs []error
	for _, c := range t.opened {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}

// sameConnection reports whether nothing changed that a channel's connections depend on: whether they ask for
// receipts is decided when they are made. Limits,
// policies, labels, prices, states and the capacity change without them: claims go by the routing in force.
func sameConnection(a, b *config.Channel) bool {
	return a.Provider == b.Provider && a.Test == b.Test && (Awaits(a) > 0) == (Awaits(b) > 0) && reflect.DeepEqual(a.Settings, b.Settings)
}

// serves reports whether the connection that was made of old may stand in for one that cannot be made
// of channel. What is stored with a choice is derived from the routing in force, so the connection must
// bill as that says: it must reach the same kind of provider, for real or as a test, and cut texts
// into the same segments. Addresses, names, secrets and windows leave no trace in a choice.
func serves(old, channel *config.Channel) bool {
	before, okBefore := cutting(old)
	after, okAfter := cutting(channel)
	return old.Provider == channel.Provider && old.Test == channel.Test && okBefore && okAfter && before == after
}

// cut is what the number of segments of a text depends on.
type cut struct {
	alphabet smpp.Alphabet
	long     smpp.LongMessages
	tables   sms.Tables
}

// cutting is that of a channel; false when its settings are unusable whatever their files hold.
func cutting(channel *config.Channel) (cut, bool) {
	if channel.Provider != "smpp" {
		return cut{}, true
	}
	cfg, err := smpp.ParseSettings(channel.Settings, standIn(channel.Settings))
	return cut{cfg.Alphabet, cfg.LongMessages, cfg.Tables}, err == nil
}

// unusable stands for a channel whose settings cannot be used on this machine. It never carried
// anything and takes nothing.
type unusable struct{}

var _ provider.Channel = unusable{}

// misconfigured is why an unusable channel is not ready.
const misconfigured = provider.Misconfigured

// Send refuses: no byte leaves.
func (unusable) Send(context.Context, provider.Submission) provider.Result {
	return provider.Result{Outcome: provider.Refused, Code: misconfigured, Err: errors.New("the settings of the channel cannot be used on this machine")}
}

// Ready is never true.
func (unusable) Ready() (ok bool, why string) { return false, misconfigured }

// Close has nothing to release.
func (unusable) Close(context.Context) error { return nil }
