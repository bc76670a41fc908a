package decide

import (
	"slices"

	"dispatcher/admission"
	"dispatcher/provider"
	"dispatcher/selector"
)

// Reasons why a candidate was passed over. They are stored with the choice and label metrics, so
// the list is closed; channels add breaker_open and the words of provider.Channel.Ready.
const (
	NoSlot          = "no_slot"      // the channel's window is used up, or has no release time yet
	Reserved        = "reserved"     // what is left of the window is kept for other lanes
	NoShare         = "no_share"     // the policy leaves no more to this process
	TenantLimit     = "tenant_limit" // a limit of the tenant is used up
	PrefixLimit     = "prefix_limit" // a limit of the number's prefix is used up
	NoBudget        = "no_budget"    // a limit in money is used up
	NoActive        = "no_active"
	draining        = "draining"
	SwitchedOff     = "disabled"
	AlreadyTried    = "already_tried"
	unfit           = "selector"
	tooLong         = "too_long" // the text has more segments on this channel than the route allows
	badFrom         = "sender"   // the channel cannot carry the sender, and has none of its own
	PriceCap        = "price_cap"
	WeightZero      = "weight_zero"
	Throttled       = "throttled"
	PinnedElsewhere = "pinned_elsewhere"
	Removed         = "removed"
	Bulkhead        = "bulkhead"      // its in-flight bound is reached, and it is silent or slow
	InFlight        = "in_flight"     // its in-flight bound is reached, and it answers
	CutOtherwise    = "cut_otherwise" // parts were accepted, and it would split the rest differently
	Breaker         = provider.BreakerOpen
	// Busy: the queue of this process for the channel is so long that further attempts would be late.
	// Claiming them would use slots that another process can use.
	Busy = provider.Busy
)

// exclusion is why a channel cannot take a message for now. The zero value excludes nothing.
type exclusion struct {
	reason string // one of the words above; empty when the channel can take it
	// limit is set when a limit has no room. cost is what the message takes of it, and over is set for
	// a limit over all channels.
	limit *admission.Exclusion
	cost  int64
	over  bool
}

// never reports whether the limit can never have room for the message: it is 0, or less than the
// message takes.
func (e *exclusion) never() bool { return e.limit != nil && e.limit.When.IsZero() }

// on names the limit; channel is the excluded channel.
func (e *exclusion) on(channel string) string {
	if e.over {
		channel = ""
	}
	return e.limit.Counter.Key().On(channel)
}

// limitName names the limit, if one has no room.
func (e *exclusion) limitName() LimitName {
	if e.limit == nil {
		return LimitName{}
	}
	return NameLimit(&e.limit.Counter.Limit, e.over)
}

// opening is room for a message on a channel: what it takes of each limit there, and when it may
// leave.
type opening struct {
	need    admission.Need
	release admission.Release
}

// exclusionOf finds out why channel c cannot take the message now or, when it can, what room it
// has. selectors are the message's, without those that have expired.
func (a *assigner) exclusionOf(t *Task, selectors []selector.Selector, c int) (opening, exclusion) {
	if reason := a.unfitting(t, selectors, c); reason != "" {
		return opening{}, exclusion{reason: reason}
	}
	room := opening{need: a.need(t, &a.routing.Channels[c])}
	accounts, over := a.accounts(a.memory[:0], t, c)
	a.memory = accounts
	release, e := admission.Fit(&a.moment, accounts, &room.need)
	if e == nil {
		room.release = release
		return room, exclusion{reason: a.noRoom(t, c)}
	}
	excluded := exclusion{reason: exclusionReason(e), limit: e, cost: e.Counter.Cost(&room.need)}
	for i := over; i < len(accounts); i++ {
		excluded.over = excluded.over || accounts[i].Counter == e.Counter
	}
	return opening{}, excluded
}

// unfitting is exclusionOf for the reasons that need no limit counter.
func (a *assigner) unfitting(t *Task, selectors []selector.Selector, c int) string {
	ch, state := &a.routing.Channels[c], a.states[c]
	switch {
	case t.Row.Pinned != "" && t.Row.Pinned != ch.Name:
		return PinnedElsewhere
	case slices.Contains(t.Row.Tried, ch.Name):
		return AlreadyTried
	case ch.State == Disabled:
		return SwitchedOff
	case ch.State == Draining:
		return draining
	case !t.withoutPayload && t.recut(ch):
		return CutOtherwise
	case !t.Route.BypassSelectors && !ch.MeetsAll(selectors):
		return unfit
	case !t.withoutPayload && t.whole() && t.segments(ch) > t.Route.MaxSegments:
		return tooLong
	case !t.withoutPayload && t.refuses(ch):
		return badFrom
	case !t.withoutPayload && t.overPriceCap(ch):
		return PriceCap
	case a.snapshot.Unready[c] == provider.Probing:
		if a.probed[c] {
			return Breaker
		}
	case a.snapshot.Unready[c] != "":
		return a.snapshot.Unready[c]
	}
	switch {
	case state == nil:
		return Removed
	case a.now.Before(state.Gate.Ease.Until):
		return Throttled
	case !state.Gate.Active.Free() && a.ticket(t, ch) == nil:
		return NoActive
	}
	return ""
}

// exclusionReason names the reason for a limit without room. A limit in money has one word for all
// scopes, because its remedy is a different one: more money. But what is reserved for other lanes
// is not spent, and keeps its own word.
func exclusionReason(e *admission.Exclusion) string {
	scope := e.Counter.Scope
	switch {
	case e.Why == admission.Reserved:
		return Reserved
	case e.Why == admission.Unshared:
		return NoShare
	case e.Counter.Unit == admission.Money:
		return NoBudget
	case scope.Tenant != "":
		return TenantLimit
	case scope.Prefix != "":
		return PrefixLimit
	}
	return NoSlot
}

// IsLimit reports whether the reason is a limit, a bulkhead or a throttling provider. Only for
// these does a message wait for its first choice.
func IsLimit(reason string) bool {
	switch reason {
	case NoSlot, Reserved, NoShare, TenantLimit, PrefixLimit, NoBudget, NoActive, Throttled,
		Bulkhead, InFlight:
		return true
	}
	return false
}

// parts is how many segments an attempt on this channel would submit.
func (a *assigner) parts(t *Task, ch *Channel) int {
	if t.Row.Pinned == ch.Name && len(t.Row.PartsLeft) > 0 {
		return len(t.Row.PartsLeft)
	}
	return t.segments(ch)
}

// remedy is what has to happen before a channel that was passed over can take the message.
type remedy uint8

const (
	byNobody   remedy = 1 << iota // none: message and channel do not fit
	byRound                       // a new round, after every channel has refused it
	byOperator                    // an operator changes the routing
	byItself                      // it passes with time
)

// remedyFor assigns each reason its remedy.
func remedyFor(reason string) remedy {
	switch reason {
	case unfit, tooLong, badFrom, PriceCap, WeightZero:
		return byNobody
	case AlreadyTried:
		return byRound
	case draining, SwitchedOff, Removed, PinnedElsewhere, CutOtherwise:
		return byOperator
	}
	return byItself
}
