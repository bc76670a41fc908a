package app

import (
	"context"
	"errors"
	"reflect"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/config"
	"dispatcher/provider"
)

// connections are what the channels of the routing in force run on. They are guarded by the
// reloader's mu.
type connections struct {
	connector connector
	// live holds what each connection was made of. A channel that cannot be connected as the routing
	// in force wants it stays connected as it was before, or is unusable when there is no before.
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
		case old != nil:
			t.live[name] = old
		case c.troubles[name] == nil:
			t.opened[name] = unusable{}
		}
		t.troubles[name] = err
	}
	return t
}

// adapted makes the pipeline treat channels that stay connected as before accordingly.
func (t *transition) adapted(compiled *dispatch.Routing) {
	for i := range compiled.Channels {
		c := &compiled.Channels[i]
		if t.troubles[c.Name] != nil && t.live[c.Name] != nil {
			adapt(t.live[c.Name], c)
		}
	}
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

// sameConnection reports whether nothing changed that a channel's connections or its pacing
// depend on. Limits of other windows, labels, prices, states and the capacity change without them.
func sameConnection(a, b *config.Channel) bool {
	return a.Provider == b.Provider && a.Test == b.Test && reflect.DeepEqual(a.Settings, b.Settings) && paceOf(a.Limits) == paceOf(b.Limits)
}

// pace is the rate that submits are spread to; the zero pace does not spread.
type pace struct {
	perSecond int64
	unit      admission.Unit
}

// paceOf is the tightest limit per second.
func paceOf(limits []admission.Limit) pace {
	var p pace
	for _, limit := range limits {
		if limit.Window == admission.Second && (p.perSecond == 0 || limit.Max < p.perSecond) {
			p = pace{limit.Max, limit.Unit}
		}
	}
	return p
}

// unusable stands for a channel whose settings cannot be used on this machine. It never carried
// anything and takes nothing.
type unusable struct{}

var _ provider.Channel = unusable{}

// misconfigured is why an unusable channel is not ready.
const misconfigured = "misconfigured"

// Send refuses: no byte leaves.
func (unusable) Send(context.Context, provider.Submission) provider.Result {
	return provider.Result{Outcome: provider.Refused, Code: misconfigured, Err: errors.New("the settings of the channel cannot be used on this machine")}
}

// Ready is never true.
func (unusable) Ready() (ok bool, why string) { return false, misconfigured }

// Close has nothing to release.
func (unusable) Close(context.Context) error { return nil }
