package report

import (
	"slices"
	"time"

	"dispatcher/admission"
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
	wishes := dispatch.SelectorsAt(l.message, at)
	for i := range candidates {
		if c := &candidates[i]; c.Eligible == nil {
			if reason := l.forbids(c.Channel, wishes); reason != "" {
				c.Eligible, c.Reason = new(false), reason
			}
		}
	}
	l.bars(candidates)
	l.redraw(candidates, b)
}

// Why a limit never has room for a message.
const (
	neverOpen  = "closed"    // it is 0
	neverSmall = "too_small" // it is less than the message takes
)

// bars names the limits that are in the way of candidates for good, whatever their counters say.
func (l *lookback) bars(candidates []Candidate) {
	for i := range candidates {
		c := &candidates[i]
		counts := limitsOf(c.Reason)
		if ch := channelNamed(l.doc, c.Channel); counts != nil && ch != nil && c.cannot() {
			_ = l.bar(c, ch, c.Channel, counts) || l.bar(c, ch, "", counts)
		}
	}
}

// bar looks for such a limit of a channel, or over all for the empty name.
func (l *lookback) bar(c *Candidate, ch *config.Channel, on string, counts func(*admission.Limit) bool) bool {
	limits := limitsOn(l.doc, on)
	for i := range limits {
		limit := &limits[i]
		if !counts(limit) || !limit.Scope.Covers(l.message.Tenant, dispatch.Recipient(l.message)) {
			continue
		}
		if c.Never = l.never(limit, ch); c.Never != "" {
			c.Limit = limit.Key().On(on)
			return true
		}
	}
	return false
}

// limitsOf tells which limits a reason is about; nil for one that says nothing of how much there is.
func limitsOf(reason string) func(*admission.Limit) bool {
	switch reason {
	case "no_slot":
		return func(l *admission.Limit) bool { return l.Unit != admission.Money && l.Scope == (admission.Scope{}) }
	case "tenant_limit":
		return func(l *admission.Limit) bool { return l.Unit != admission.Money && l.Scope.Tenant != "" }
	case "prefix_limit":
		return func(l *admission.Limit) bool { return l.Unit != admission.Money && l.Scope.Prefix != "" }
	case "no_budget":
		return func(l *admission.Limit) bool { return l.Unit == admission.Money }
	}
	return nil
}

// never is why the limit never has room for the message on a channel; empty when it may have.
func (l *lookback) never(limit *admission.Limit, ch *config.Channel) string {
	segments := int64(l.message.Plan.Segments)
	switch {
	case limit.Max == 0:
		return neverOpen
	case limit.Unit == admission.Segments && segments > limit.Max,
		limit.Unit == admission.Money && segments*l.cheapest(ch) > limit.Max:
		return neverSmall
	}
	return ""
}

// cheapest is the least that a segment of the message can have cost on a channel: what it did cost, where neither
// the date nor the country of the number matters, which are not known here.
func (l *lookback) cheapest(ch *config.Channel) int64 {
	if len(ch.Price.Lists) != 1 || len(ch.Price.Lists[0].Countries) > 0 {
		return ch.Price.Least()
	}
	list := &ch.Price.Lists[0]
	price := dispatch.NewPrice(ch.Price.Currency, dispatch.PriceList{Default: list.Default, Prefixes: list.Prefixes, Networks: list.Networks})
	to := dispatch.DestinationOf(l.message, nil)
	return price.Segment(&to, l.message.ReceivedAt)
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
