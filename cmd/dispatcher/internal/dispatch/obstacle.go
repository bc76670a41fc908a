package dispatch

import (
	"slices"

	"dispatcher/admission"
	"dispatcher/provider"
	"dispatcher/selector"
)

// Reasons why a candidate was passed over. They are stored with the choice and stand
// in metrics, so the list is closed; channels add breaker_open and the words of provider.Channel.Ready.
const (
	noSlot       = "no_slot"
	noActive     = "no_active"
	draining     = "draining"
	disabled     = "disabled"
	alreadyTried = "already_tried"
	unfit        = "selector"
	priceCap     = "price_cap"
	weightZero   = "weight_zero"
	throttled    = "throttled"
	pinnedAway   = "pinned_elsewhere"
	removed      = "removed"
	breaker      = provider.BreakerOpen
)

// obstacle is why channel c cannot take the message now; empty when it can. wishes are
// the message's selectors that still count.
func (a *assigner) obstacle(t *task, wishes []selector.Selector, c int) string {
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
	case !t.route.BypassSelectors && !selector.SatisfiesAll(wishes, ch.Labels):
		return unfit
	case t.msg.MaxPrice != nil && ch.Price.Segment(t.msg.To)*int64(t.segments(ch)) > *t.msg.MaxPrice:
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
	case !state.Gate.Active.Free():
		return noActive
	}
	need := a.need(t, ch)
	if _, o := admission.Fit(&a.moment, a.accounts(t, c), &need); o != nil {
		return noSlot
	}
	return ""
}

// need is what the message wants of the limits when it goes to a channel.
func (a *assigner) need(t *task, ch *Channel) admission.Need {
	parts := a.parts(t, ch)
	return admission.Need{Lane: t.row.Lane, Segments: parts, Micros: int64(parts) * ch.Price.Segment(t.msg.To)}
}

// accounts are the limits that count a message on a channel. They are good until the next call.
func (a *assigner) accounts(_ *task, c int) []admission.Account {
	gate := &a.states[c].Gate
	a.books = a.books[:0]
	for i := range gate.Counters {
		a.books = append(a.books, admission.Account{Counter: &gate.Counters[i], Rate: gate.Ease.RateAt(a.now)})
	}
	return a.books
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
	case unfit, priceCap, weightZero:
		return byNobody
	case alreadyTried:
		return byRound
	case draining, disabled, removed, pinnedAway:
		return byOperator
	}
	return byItself
}
