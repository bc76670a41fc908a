package ledger

import (
	"slices"

	"dispatcher/admission"
)

// use is what the decisions give to one channel, or to a tenant.
type use struct {
	attempts, segments, micros int64
	tickets                    int64            // attempts that go on with the slot of the one before
	spent                      map[string]int64 // micros by currency
}

// useKey is a channel and a tenant; empty stands for all of them.
type useKey struct{ channel, tenant string }

// uses is what the decisions of a claim give away.
type uses struct {
	of     map[useKey]*use
	scoped bool // some limits are narrower than a channel, or over all
	money  bool // some are in money
}

func newUses(seen *Seen) *uses {
	u := &uses{of: make(map[useKey]*use, len(seen.Channels)+len(seen.Scoped)+1), scoped: len(seen.Scoped) > 0}
	for i := range seen.Channels {
		u.of[useKey{channel: seen.Channels[i].Name}] = &use{}
		u.money = u.money || inMoney(seen.Channels[i].Gate.Counters)
	}
	if u.scoped {
		u.of[useKey{}] = &use{}
	}
	for i := range seen.Scoped {
		s := &seen.Scoped[i]
		if s.Scope.Tenant != "" {
			u.of[useKey{s.Channel, s.Scope.Tenant}] = &use{}
		}
		u.money = u.money || inMoney(s.Counters)
	}
	return u
}

func inMoney(counters []admission.Counter) bool {
	return slices.ContainsFunc(counters, func(c admission.Counter) bool { return c.Unit == admission.Money })
}

// given is what was given to a channel, a tenant or both; nothing where nothing could be.
func (u *uses) given(channel, tenant string) *use {
	if given := u.of[useKey{channel, tenant}]; given != nil {
		return given
	}
	return &use{} // a prefix on a channel that is not locked
}

// add counts an attempt wherever it may have taken slots.
func (u *uses) add(m *Message, a *Attempt) error {
	own := u.of[useKey{channel: a.Channel}]
	if own == nil {
		return refuse("an attempt goes to channel %q, which the claim has not locked", a.Channel)
	}
	own.add(a, u.money)
	if !u.scoped {
		return nil
	}
	u.of[useKey{}].add(a, u.money)
	if m.Tenant == "" {
		return nil
	}
	for _, channel := range [...]string{a.Channel, ""} {
		if tenant := u.of[useKey{channel, m.Tenant}]; tenant != nil {
			tenant.add(a, u.money)
		}
	}
	return nil
}

func (u *use) add(a *Attempt, money bool) {
	u.attempts++
	u.segments += int64(a.Segments)
	u.micros += a.PriceMicros
	if a.Ticket != nil {
		u.tickets++
	}
	if money {
		if u.spent == nil {
			u.spent = map[string]int64{}
		}
		u.spent[a.Currency] += a.PriceMicros
	}
}

// checkAll compares what was given away with what was taken from the counters.
func (u *uses) checkAll(seen *Seen, was *before) error {
	for i := range seen.Channels {
		c, use := &seen.Channels[i], u.given(seen.Channels[i].Name, "")
		if got := c.Gate.Active.Count - was.gates[i].active; got != use.attempts-use.tickets {
			return refuse("channel %s got %d attempts, %d of them with a ticket, and its active count grew by %d",
				c.Name, use.attempts, use.tickets, got)
		}
		if err := use.checkCounters("channel "+c.Name, was.gates[i].counters, c.Gate.Counters); err != nil {
			return err
		}
	}
	for i := range seen.Scoped {
		s := &seen.Scoped[i]
		use := u.given(s.Channel, s.Scope.Tenant)
		if err := use.checkCounters("a scope of channel \""+s.Channel+"\"", was.scoped[i], s.Counters); err != nil {
			return err
		}
	}
	return nil
}

func (u *use) checkCounters(owner string, before, after []admission.Counter) error {
	if len(after) != len(before) {
		return refuse("%s had %d counters and now has %d", owner, len(before), len(after))
	}
	for i := range after {
		if err := u.checkCounter(owner, &before[i], &after[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkCounter compares only what the row holds: the rest of a limit is added by decide. A place
// moves back only when it is made at another pace.
func (u *use) checkCounter(owner string, was, is *admission.Counter) error {
	if is.Key() != was.Key() || is.Limit.Max != was.Limit.Max || is.Start.Before(was.Start) || is.Pace < 0 ||
		(is.Pace == was.Pace || was.Next.IsZero()) && is.Next.Before(was.Next) {
		return refuse("counter %s of %s was replaced or moved back", was.Window, owner)
	}
	base, most, taken := int64(0), was.Limit.Max, map[string]int64(nil)
	if is.Start.Equal(was.Start) {
		base, most, taken = was.Granted, was.Max, was.Taken
	}
	if is.Max != most {
		return refuse("counter %s of %s allows %d and should allow %d", is.Window, owner, is.Max, most)
	}
	least, exact := u.units(was)
	grew := is.Granted - base
	if grew < least || grew > exact {
		return refuse("counter %s of %s stands at %d and should be at %d", is.Window, owner, is.Granted, base+exact)
	}
	if is.Granted > is.Max && grew > 0 {
		return refuse("counter %s of %s stands at %d of %d", is.Window, owner, is.Granted, is.Max)
	}
	return checkTallies(owner, taken, is, grew)
}

// units is what must have been taken of a counter. Both are the same, except for a prefix, because
// a message's number is not known here, and for money, of which the counter may hold one currency.
func (u *use) units(c *admission.Counter) (least, most int64) {
	switch c.Unit {
	case admission.Messages:
		least, most = u.attempts, u.attempts
	case admission.Segments:
		least, most = u.segments, u.segments
	case admission.Money:
		least, most = u.spent[c.Currency], u.micros
	}
	if c.Scope.Prefix != "" {
		least = 0
	}
	return least, most
}

// checkTallies refuses tallies that shrank, or grew by more than the counter did.
func checkTallies(owner string, was map[string]int64, is *admission.Counter, grew int64) error {
	for name, n := range is.Taken {
		if n < was[name] || n-was[name] > grew {
			return refuse("tally %s of counter %s of %s went from %d to %d while %d were taken", name, is.Window, owner, was[name], n, grew)
		}
	}
	for name := range was {
		if _, kept := is.Taken[name]; !kept {
			return refuse("tally %s of counter %s of %s is gone", name, is.Window, owner)
		}
	}
	return nil
}
