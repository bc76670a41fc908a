package report

import (
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// lookback adds to stored candidates what can be told from the message, the routing version
// and the draw keys alone.
type lookback struct {
	message *ledger.Message
	doc     *config.Routing
	route   *config.Route // nil when the version is not known or has it no more
	keys    []selector.Key
}

func newLookback(m *ledger.Message, doc *config.Routing, keys []selector.Key) *lookback {
	return &lookback{message: m, doc: doc, route: routeNamed(doc, m.Plan.Route), keys: keys}
}

// look completes the candidates of a choice that was made at a moment. Those that come from
// another version than the document are left alone.
func (l *lookback) look(candidates []Candidate, b *Basis, at time.Time) {
	if l.route == nil || b.RankedVersion != l.message.Plan.Version {
		return
	}
	wishes := dispatch.Wishes(l.message, at)
	for i := range candidates {
		if c := &candidates[i]; c.Eligible == nil {
			if reason := l.forbids(c.Channel, wishes); reason != "" {
				c.Eligible, c.Reason = new(false), reason
			}
		}
	}
	l.redraw(candidates, b)
}

// forbids is why no state of the channel whatever would have let it take the message; empty when
// the version does not forbid it.
func (l *lookback) forbids(channel string, wishes []selector.Selector) string {
	at := slices.IndexFunc(l.doc.Channels, func(c config.Channel) bool { return c.Name == channel })
	switch {
	case at < 0:
		return ""
	case l.doc.Channels[at].State == config.Disabled:
		return "disabled"
	case l.doc.Channels[at].State == config.Draining:
		return "draining"
	case !l.route.BypassSelectors && !selector.SatisfiesAll(wishes, l.doc.Channels[at].Labels):
		return "selector"
	}
	return ""
}
