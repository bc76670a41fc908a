package audit

import (
	"math"
	"slices"
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/provider"
	"dispatcher/selector"
)

// exclusions checks why candidates were passed over, in the order in which exclusionOf looks.
// Slots, breakers and connections are what the claim saw; the rest follows from the version and the
// attempts before.
func (c *check) exclusions(
	e *edition, t *decide.Task, s *progress, ch *choice, listed []decide.Ranked, places []int,
) {
	n := considered(listed)
	for i := range listed[n:] {
		if extra := &listed[n+i]; extra.Reason != "" {
			c.differs(
				ch.attempt, whatExclusion, extra.Channel+" "+extra.Reason,
				extra.Channel+" was not looked at",
			)
		}
	}
	round := c.round(ch, s, listed[:n])
	for i := range listed[:n] {
		stored := listed[i].Reason
		may, derived := c.mayBeThen(e, t, s, ch, places[i], i, round, stored)
		if !may {
			c.differs(
				ch.attempt, whatExclusion, strings.TrimSpace(listed[i].Channel+" "+stored),
				strings.TrimSpace(listed[i].Channel+" "+derived),
			)
		}
	}
}

// round is the attempt, from 0, that the round of a choice began after: a channel that was tried
// before is a candidate again once every channel has been. Which attempts a round had is told by
// who was a candidate again; a message that had no new round had all in the first.
func (c *check) round(ch *choice, s *progress, listed []decide.Ranked) int {
	from := 0
	for i := range listed {
		switch listed[i].Reason {
		case decide.AlreadyTried, decide.PinnedElsewhere, decide.CutOtherwise,
			decide.WeightZero: // the latter three come before
		default:
			from = max(from, s.certainly(listed[i].Channel)+1)
		}
	}
	if from > 0 && c.record.Message.Rounds == 0 {
		return 0
	}
	return from
}

// mayBeThen is mayBe at the moment of the choice, by which prices count. That of a wait is not
// known: it is enough that the reason holds under one of the price lists that may have held.
func (c *check) mayBeThen(
	e *edition, t *decide.Task, s *progress, ch *choice, place, at, round int, stored string,
) (may bool, derived string) {
	for _, moment := range c.moments(ch, &e.Routing.Channels[t.Route.Members[place]].Price) {
		t.At = moment
		if may, derived = c.mayBe(e, t, s, ch, place, at, round, stored); may {
			break
		}
	}
	return may, derived
}

// moments are when the choice was made: one, where that is known, else one for each price list that
// may have held.
func (c *check) moments(ch *choice, p *decide.Price) []time.Time {
	if !ch.at.IsZero() {
		return []time.Time{ch.at}
	}
	moments := []time.Time{c.record.Message.ReceivedAt}
	for i := range p.Lists {
		if p.Lists[i].From.After(c.record.Message.ReceivedAt) {
			moments = append(moments, p.Lists[i].From)
		}
	}
	return moments
}

// mayBe reports whether a candidate can have been passed over for a reason; derived is the reason
// that it would have been otherwise, empty for none but passing ones.
func (c *check) mayBe(
	e *edition, t *decide.Task, s *progress, ch *choice, place, at, round int, stored string,
) (may bool, derived string) {
	member := t.Route.Members[place]
	channel := &e.Routing.Channels[member]
	name := channel.Name
	ranked := at > 0 || !t.Route.Draws() || t.First < 0
	if ranked && ch.ranking.By == string(decide.Redraw) &&
		t.Route.Table.Entry(place).Weight.IsZero() {
		return stored == decide.WeightZero, decide.WeightZero
	}
	all, few := c.selectorsBetween(ch.at)
	derived = e.Exclusion(t, all, member)
	switch {
	case derived == decide.PinnedElsewhere || stored == decide.PinnedElsewhere:
		return stored == decide.PinnedElsewhere &&
			(derived == decide.PinnedElsewhere || (!s.known && s.attempts > 0)), derived
	case derived == decide.CutOtherwise || stored == decide.CutOtherwise:
		known := s.known || s.attempts == 0
		return stored == decide.CutOtherwise && (derived == decide.CutOtherwise || !known ||
			c.withoutPayload && e.MayMisfit(t, member, stored, true)), derived
	case stored == decide.AlreadyTried:
		return s.refusedBy(name, round), derived
	case s.certainly(name) >= round:
		return false, decide.AlreadyTried
	case c.withoutPayload && e.MayMisfit(t, member, stored, c.cutsOtherwise(t, channel)):
		return true, derived
	case stored == derived && derived != "":
		return true, derived
	}
	if lenient := e.Exclusion(t, few, member); lenient != derived {
		if stored == lenient && lenient != "" {
			return true, derived
		}
		if lenient == "" {
			derived = ""
		}
	}
	return derived == "" && e.passing(t, member, stored, ch), derived
}

// selectorsBetween are the selectors that counted at a time. Where that is not known, they are all
// that the message has, and those that never expire: what passes under both does at any time.
func (c *check) selectorsBetween(at time.Time) (all, few []selector.Selector) {
	if selectors, known := c.selectors(at); known {
		return selectors, selectors
	}
	return c.msg.Selectors, selector.Unexpired(c.msg.Selectors, math.MaxInt64)
}

// passing reports whether a reason is one that a channel can have had for a while; none is one for
// the channel that was chosen.
func (e *edition) passing(t *decide.Task, c int, reason string, ch *choice) bool {
	switch {
	case reason == "":
		return !ch.waits()
	case decide.IsLimit(reason):
		return e.limited(t, c, reason)
	}
	return reason == decide.Busy || provider.Unready(reason)
}

// limited reports whether a limit can have put a reason in the message's way on channel c. What was
// taken of it is not on record, but a limit has to be there.
func (e *edition) limited(t *decide.Task, c int, reason string) bool {
	ch := &e.Routing.Channels[c]
	bound, known := e.Bounds[ch.Name], e.Bounds != nil
	switch reason {
	case decide.NoSlot:
		return !known || bound.Windows
	case decide.NoActive:
		return !known || bound.Active
	case decide.Throttled, decide.Bulkhead, decide.InFlight:
		return true
	case decide.NoShare:
		return !known || decide.Divides(ch.Policy) && (bound.Windows || e.budgeted(t, c))
	}
	return !known || slices.ContainsFunc(e.Limits(t, c), func(l admission.Limit) bool {
		money := l.Unit == admission.Money
		switch reason {
		case decide.NoBudget:
			return money
		case decide.Reserved:
			return len(l.Reserve) > 0
		case decide.TenantLimit:
			return !money && l.Scope.Tenant != ""
		case decide.PrefixLimit:
			return !money && l.Scope.Prefix != ""
		}
		return false
	})
}

// budgeted reports whether channel c has a limit in money for all its messages.
func (e *edition) budgeted(t *decide.Task, c int) bool {
	return slices.ContainsFunc(
		e.Limits(t, c),
		func(l admission.Limit) bool {
			return l.Unit == admission.Money && l.Scope == (admission.Scope{})
		},
	)
}
