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

// exclusions checks the exclusion reasons of candidates. Those of slots, breakers and connections
// depend on the state that the claim saw and can only be checked for plausibility. The others
// follow from the version and the attempts before.
func (c *check) exclusions(
	e *edition, t *decide.Task, p *progress, ch *choice, listed []decide.Ranked, places []int,
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
	round := c.round(p, listed[:n])
	for i := range listed[:n] {
		stored := listed[i].Reason
		may, derived := c.mayBeThen(e, t, p, ch, places[i], i, round, stored)
		if !may {
			c.differs(
				ch.attempt, whatExclusion, strings.TrimSpace(listed[i].Channel+" "+stored),
				strings.TrimSpace(listed[i].Channel+" "+derived),
			)
		} else if l := listed[i].Limit; !e.has(t, t.Route.Members[places[i]], stored, l) {
			c.differs(
				ch.attempt, whatExclusion, listed[i].Channel+" "+decide.StoredReason(stored, l),
				"no such limit",
			)
		}
	}
}

// round is the number of attempts before the round of a choice. A new round begins when no channel
// that was not tried can take the message soon; then channels tried before are candidates again. So
// a tried channel that is a candidate shows that a round began after its attempt. It is 0 in the
// first round.
func (c *check) round(p *progress, listed []decide.Ranked) int {
	from := 0
	for i := range listed {
		switch listed[i].Reason {
		case decide.AlreadyTried, decide.PinnedElsewhere, decide.CutOtherwise,
			decide.WeightZero: // the last three are found before a channel counts as tried
		default:
			from = max(from, p.certainly(listed[i].Channel)+1)
		}
	}
	if from > 0 && c.record.Message.Rounds == 0 {
		return 0
	}
	return from
}

// mayBeThen is mayBe at the time of the choice, which decides the price list. The time of a wait is
// not known, so it is enough that the reason is possible under one of the price lists.
func (c *check) mayBeThen(
	e *edition, t *decide.Task, p *progress, ch *choice, place, at, round int, stored string,
) (may bool, derived string) {
	for _, moment := range c.moments(ch, &e.Routing.Channels[t.Route.Members[place]].Price) {
		t.At = moment
		if may, derived = c.mayBe(e, t, p, ch, place, at, round, stored); may {
			break
		}
	}
	return may, derived
}

// moments returns the time of the choice if it is known, else one time for each possible price
// list.
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

// mayBe reports whether a candidate can have had the stored exclusion reason. derived is the reason
// that follows from the version and the attempts; empty when none does.
func (c *check) mayBe(
	e *edition, t *decide.Task, p *progress, ch *choice, place, at, round int, stored string,
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
			(derived == decide.PinnedElsewhere || (!p.known && p.attempts > 0)), derived
	case derived == decide.CutOtherwise || stored == decide.CutOtherwise:
		known := p.known || p.attempts == 0
		return stored == decide.CutOtherwise && (derived == decide.CutOtherwise || !known ||
			c.withoutPayload && e.MayMisfit(t, member, stored, true)), derived
	case stored == decide.AlreadyTried:
		return p.refusedBy(name, round), derived
	case p.certainly(name) >= round:
		return false, decide.AlreadyTried
	case c.withoutPayload && e.MayMisfit(t, member, stored, c.cutsOtherwise(t, channel)):
		return true, derived
	case stored == derived && derived != "":
		return true, derived
	}
	if before := e.ExclusionForAnySender(t, all, member); before != derived {
		if stored == before && before != "" {
			return true, derived
		}
		if before == "" {
			derived = ""
		}
	}
	if lenient := e.Exclusion(t, few, member); lenient != derived {
		if stored == lenient && lenient != "" {
			return true, derived
		}
		if lenient == "" {
			derived = ""
		}
	}
	return derived == "" && e.passing(member, stored, ch), derived
}

// selectorsBetween returns the selectors that had not expired at a time. If the time is not known,
// it returns all selectors, and those that never expire; the true ones lie between.
func (c *check) selectorsBetween(at time.Time) (all, few []selector.Selector) {
	if selectors, known := c.selectors(at); known {
		return selectors, selectors
	}
	return c.msg.Selectors, selector.Unexpired(c.msg.Selectors, math.MaxInt64)
}

// passing reports whether a reason depends on shared state, such as slots or connections, and is
// possible. No reason is possible for the chosen channel.
func (e *edition) passing(c int, reason string, ch *choice) bool {
	switch {
	case reason == "":
		return !ch.waits()
	case reason == decide.NoActive:
		return e.Bounded == nil || e.Bounded[e.Routing.Channels[c].Name]
	case decide.IsLimit(reason):
		return true // has checks that there is such a limit
	}
	return reason == decide.Busy || provider.Unready(reason)
}

// has reports whether a limit of that name counts the message on channel c and can be the cause of
// the reason. What the limit had left is not recorded. Reasons that no limit causes have no name.
func (e *edition) has(t *decide.Task, c int, reason string, name decide.LimitName) bool {
	switch reason {
	case decide.NoSlot, decide.NoShare, decide.NoBudget, decide.Reserved, decide.TenantLimit,
		decide.PrefixLimit:
	default:
		return !name.Named()
	}
	if e.Bounded == nil {
		return true
	}
	divides := decide.Divides(e.Routing.Channels[c].Policy)
	return slices.ContainsFunc(e.Limits(t, c), func(l decide.CountingLimit) bool {
		return limits(&l.Limit, reason, divides) && decide.NameLimit(&l.Limit, l.Over) == name
	})
}

// limits reports whether a limit without a free slot can have this reason. divides says that the
// channel's policy divides the limits of the channel.
func limits(l *admission.Limit, reason string, divides bool) bool {
	whole, money := l.Scope == (admission.Scope{}), l.Unit == admission.Money
	switch reason {
	case decide.NoSlot:
		return !money && whole
	case decide.NoShare:
		return whole && divides
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
}
