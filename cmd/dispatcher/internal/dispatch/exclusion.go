package dispatch

import (
	"slices"

	"dispatcher/admission"
	"dispatcher/provider"
	"dispatcher/selector"
)

// Reasons why a candidate was passed over. They are stored with the choice and stand in metrics, so
// the list is closed; channels add breaker_open and the words of provider.Channel.Ready.
const (
	noSlot       = "no_slot"      // the window of the channel is used up, or it has no place yet
	reserved     = "reserved"     // what is left of the window is kept for other lanes
	noShare      = "no_share"     // the policy leaves no more to this process
	tenantLimit  = "tenant_limit" // a limit of the tenant is used up
	prefixLimit  = "prefix_limit" // a limit of the number's prefix is used up
	noBudget     = "no_budget"    // a limit in money is used up
	noActive     = "no_active"
	draining     = "draining"
	disabled     = "disabled"
	alreadyTried = "already_tried"
	unfit        = "selector"
	tooLong      = "too_long" // the text has more segments on this channel than the route allows
	badFrom      = "sender"   // the channel may not carry the message's sender, and has none in its place
	priceCap     = "price_cap"
	weightZero   = "weight_zero"
	throttled    = "throttled"
	pinnedAway   = "pinned_elsewhere"
	removed      = "removed"
	bulkhead     = "bulkhead"      // it answers late and has its share of what this process may have under way
	inFlight     = "in_flight"     // this process has as much under way on it as it may have; it answers promptly
	cutOtherwise = "cut_otherwise" // parts were accepted of the text as it was cut then, and the channel would cut it otherwise now
	breaker      = provider.BreakerOpen
	// busy: the queue of this process for the channel is so long that more would come late. To
	// claim them would use slots that another process can use.
	busy = provider.Busy
)

// exclusion is why a channel cannot take a message for now. The zero value excludes nothing.
type exclusion struct {
	reason string // one of the words above; empty when the channel can take it
	// limit is set when a limit is in the way. cost is what the message takes of it, and over is
	// set for a limit over all channels.
	limit *admission.Exclusion
	cost  int64
	over  bool
}

// never reports whether the limit has no room for the message at any time: it is 0, or less than
// the message takes.
func (x *exclusion) never() bool { return x.limit != nil && x.limit.When.IsZero() }

// on names the limit, which stands in the way of a channel.
func (x *exclusion) on(channel string) string {
	if x.over {
		channel = ""
	}
	return x.limit.Counter.Key().On(channel)
}

// opening is room for a message on a channel: what it takes of each limit there, and when it may
// leave.
type opening struct {
	need    admission.Need
	release admission.Release
}

// exclusionOf finds out why channel c cannot take the message now or, when it can, what room there
// is. selectors are those of the message that still count.
func (a *assigner) exclusionOf(t *task, selectors []selector.Selector, c int) (opening, exclusion) {
	if reason := a.unfitting(t, selectors, c); reason != "" {
		return opening{}, exclusion{reason: reason}
	}
	room, excluded := a.fit(t, c)
	if excluded.reason == "" {
		excluded.reason = a.noRoom(t, c)
	}
	return room, excluded
}

// unfitting is exclusionOf for what no counter says.
func (a *assigner) unfitting(t *task, selectors []selector.Selector, c int) string {
	ch, state := &a.routing.Channels[c], a.states[c]
	switch {
	case t.row.Pinned != "" && t.row.Pinned != ch.Name:
		return pinnedAway
	case slices.Contains(t.row.Tried, ch.Name):
		return alreadyTried
	case ch.State == Disabled:
		return disabled
	case ch.State == Draining:
		return draining
	case t.recut(ch):
		return cutOtherwise
	case !t.route.BypassSelectors && !selector.SatisfiesAll(selectors, ch.Labels):
		return unfit
	case t.whole() && t.segments(ch) > t.route.MaxSegments:
		return tooLong
	case t.refuses(ch):
		return badFrom
	case t.overPriceCap(ch):
		return priceCap
	case a.unready[c] == provider.Probing:
		if a.probed[c] {
			return breaker
		}
	case a.unready[c] != "":
		return a.unready[c]
	}
	switch {
	case state == nil:
		return removed
	case a.now.Before(state.Gate.Ease.Until):
		return throttled
	case !state.Gate.Active.Free() && a.ticket(t, ch) == nil:
		return noActive
	}
	return ""
}

// exclusionReason names what a limit lacks. A limit in money has one word whatever its scope,
// because being out of money needs its own remedy; but what is kept for others is not spent.
func exclusionReason(o *admission.Exclusion) string {
	scope := o.Counter.Scope
	switch {
	case o.Why == admission.Reserved:
		return reserved
	case o.Why == admission.Unshared:
		return noShare
	case o.Counter.Unit == admission.Money:
		return noBudget
	case scope.Tenant != "":
		return tenantLimit
	case scope.Prefix != "":
		return prefixLimit
	}
	return noSlot
}

// limits reports whether a reason is that of a limit, or of a bulkhead: it passes with time alone.
func limits(reason string) bool {
	switch reason {
	case noSlot, reserved, noShare, tenantLimit, prefixLimit, noBudget, noActive, throttled, bulkhead, inFlight:
		return true
	}
	return false
}

// parts is how many segments an attempt on this channel would submit.
func (a *assigner) parts(t *task, ch *Channel) int {
	if t.row.Pinned == ch.Name && len(t.row.PartsLeft) > 0 {
		return len(t.row.PartsLeft)
	}
	return t.segments(ch)
}

// remedy is what has to happen before a channel that was passed over can take the message.
type remedy uint8

const (
	byNobody   remedy = 1 << iota // nothing does: message and channel do not fit
	byRound                       // a new round, after every channel has refused it
	byOperator                    // somebody changes the routing
	byItself                      // it passes
)

// remedyFor sorts the reasons above.
func remedyFor(reason string) remedy {
	switch reason {
	case unfit, tooLong, badFrom, priceCap, weightZero:
		return byNobody
	case alreadyTried:
		return byRound
	case draining, disabled, removed, pinnedAway, cutOtherwise:
		return byOperator
	}
	return byItself
}
