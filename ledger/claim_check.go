package ledger

import (
	"encoding/json"
	"slices"

	"dispatcher/admission"
)

// check returns an error for decisions that do not fit what was shown. The constraints of the
// database detect an exceeded limit. They cannot detect an attempt that took no slot at all, which
// is why this check exists.
func check(seen *Seen, was *before, d *Decisions) error {
	if len(d.Each) != len(seen.Messages) {
		return refuse("%d decisions for %d messages", len(d.Each), len(seen.Messages))
	}
	given := newUses(seen)
	for i := range d.Each {
		m, each := &seen.Messages[i], &d.Each[i]
		if err := checkOne(m, seen.Intakes[i], each); err != nil {
			return err
		}
		if each.State != Sending {
			continue
		}
		if err := given.add(m, &each.Attempt); err != nil {
			return err
		}
	}
	if err := given.checkAll(seen, was); err != nil {
		return err
	}
	return checkCursors(seen, was.cursors, d)
}

// checkOne returns an error for a decision that its message cannot take.
func checkOne(m *Message, intake Intake, d *Decision) error {
	switch d.State {
	case "":
		if intake == Fresh && m.State == Sending {
			return refuse("a new message was left in state sending without an attempt")
		}
		return nil
	case Sending:
		if d.Attempt.Number != m.Attempts+1 {
			return refuse("attempt %d follows %d attempts", d.Attempt.Number, m.Attempts)
		}
		if r := d.Attempt.Ranking; len(r) > 0 && !json.Valid(r) { // PostgreSQL reads it later
			return refuse("the ranking of an attempt is not JSON")
		}
		if err := checkTicket(m, &d.Attempt); err != nil {
			return err
		}
		if intake == Fresh && m.State != Sending {
			return refuse("a message that was stored as %s cannot be sent in the same claim",
				m.State)
		}
	case Waiting:
		if d.NextAt.IsZero() {
			return refuse("a message waits without a time")
		}
	case Failed, Rejected:
	case Unknown:
		if m.Attempts == 0 {
			return refuse("nobody can have taken a message that was never sent")
		}
	case Accepted:
		if intake != Due || m.State != Accepted {
			return refuse("a claim cannot tell that a message was accepted")
		}
	case Scheduled, Retry, Delivered, Undelivered, NoReceipt, Dead:
		return refuse("a claim cannot put a message into state %s", d.State)
	default:
		return refuse("state %q does not exist", d.State)
	}
	if intake != Fresh && intake != Due {
		return refuse("a message that another claim owns was decided upon")
	}
	return nil
}

// checkTicket returns an error for a ticket that is not the one that was shown: its slot belongs to
// another message.
func checkTicket(m *Message, a *Attempt) error {
	switch {
	case a.Ticket == nil:
		return nil
	case m.Ticket == nil:
		return refuse("an attempt goes on with a ticket that its message does not hold")
	case a.Channel != m.Pinned || !a.Ticket.AcceptedAt.Equal(m.Ticket.AcceptedAt):
		return refuse("an attempt on channel %s goes on with a ticket for another slot", a.Channel)
	}
	return nil
}

// checkCursors returns an error for a cursor that moved to a channel which got no attempt for its
// route. A channel has had its turn only when it got an attempt.
func checkCursors(seen *Seen, before []Cursor, d *Decisions) error {
	if len(seen.Cursors) != len(before) {
		return refuse("%d cursors were shown and %d came back", len(before), len(seen.Cursors))
	}
	for i, c := range seen.Cursors {
		switch {
		case c == before[i]:
		case c.Route != before[i].Route:
			return refuse("the cursor of route %s was replaced", before[i].Route)
		case c.Position < 0:
			return refuse("the cursor of route %s moved to position %d", c.Route, c.Position)
		case !gave(seen, d, c.Route, c.Channel):
			return refuse("the cursor of route %s moved to channel %q, which got no attempt for it",
				c.Route, c.Channel)
		}
	}
	return nil
}

// gave reports whether a message of the route got an attempt on the channel. A message with an
// attempt keeps its plan, but the routing in force may have another route for it.
func gave(seen *Seen, d *Decisions, route, channel string) bool {
	for i := range d.Each {
		each := &d.Each[i]
		if each.State != Sending || each.Attempt.Channel != channel {
			continue
		}
		plan := &each.Plan
		if plan.Version == 0 {
			plan = &seen.Messages[i].Plan // the row keeps its own
		}
		if plan.Route == route || seen.Messages[i].Attempts > 0 {
			return true
		}
	}
	return false
}

// use is what the decisions take from one channel, or from a tenant's limits on it.
type use struct {
	attempts, segments, micros int64
	tickets                    int64            // attempts that use the slot of the attempt before
	spent                      map[string]int64 // micros by currency
}

// useKey is a channel and a tenant. Empty means all channels, or all tenants.
type useKey struct{ channel, tenant string }

// uses is what the decisions of a claim take, by channel and tenant.
type uses struct {
	of     map[useKey]*use
	scoped bool // some limits are narrower than a channel, or over all channels
	money  bool // some limits are in money
}

func newUses(seen *Seen) *uses {
	u := &uses{
		of:     make(map[useKey]*use, len(seen.Channels)+len(seen.Scoped)+1),
		scoped: len(seen.Scoped) > 0,
	}
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
	return slices.ContainsFunc(counters, func(c admission.Counter) bool {
		return c.Unit == admission.Money
	})
}

// given is what was taken from a channel, from a tenant's limits, or both.
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

// checkAll compares what the decisions take with how the counters changed.
func (u *uses) checkAll(seen *Seen, was *before) error {
	for i := range seen.Channels {
		c, use := &seen.Channels[i], u.given(seen.Channels[i].Name, "")
		if got := c.Gate.Active.Count - was.gates[i].active; got != use.attempts-use.tickets {
			return refuse("channel %s got %d attempts, %d of them with a ticket, "+
				"and its active count grew by %d",
				c.Name, use.attempts, use.tickets, got)
		}
		if err := use.checkCounters("channel "+c.Name, was.gates[i].counters,
			c.Gate.Counters); err != nil {
			return err
		}
	}
	for i := range seen.Scoped {
		s := &seen.Scoped[i]
		use := u.given(s.Channel, s.Scope.Tenant)
		if err := use.checkCounters("a scope of channel \""+s.Channel+"\"", was.scoped[i],
			s.Counters); err != nil {
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

// checkCounter compares only what the row of the limit stores: the caller adds the rest from the
// routing document. A release time may move back only when the pace has changed.
func (u *use) checkCounter(owner string, was, is *admission.Counter) error {
	if is.Key() != was.Key() || is.Limit.Max != was.Limit.Max || is.Start.Before(was.Start) ||
		is.Pace < 0 ||
		(is.Pace == was.Pace || was.Next.IsZero()) && is.Next.Before(was.Next) {
		return refuse("counter %s of %s was replaced or moved back", was.Window, owner)
	}
	from := *was
	if !is.Start.Equal(was.Start) {
		from.Open(is.Start)
	}
	if is.Max != from.Max {
		return refuse("counter %s of %s allows %d and should allow %d", is.Window, owner, is.Max,
			from.Max)
	}
	least, exact := u.units(was)
	grew := is.Granted - from.Granted
	if grew < least || grew > exact {
		return refuse("counter %s of %s stands at %d and should be at %d", is.Window, owner,
			is.Granted, from.Granted+exact)
	}
	if is.Granted > is.Max && grew > 0 {
		return refuse("counter %s of %s stands at %d of %d", is.Window, owner, is.Granted, is.Max)
	}
	if units, known := is.Before(); known {
		was, before := from.Before()
		if !before || units > was && units > is.Limit.Max {
			return refuse("counter %s of %s counts %d of %d in the second before, after %d",
				is.Window, owner, units, is.Limit.Max, was)
		}
	}
	return checkTallies(owner, from.Taken, is, grew)
}

// units are the least and the most by which a counter must have grown. They differ for a prefix,
// because a message's number is not known here, and for money, because the counter holds one
// currency.
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

// checkTallies returns an error for tallies that shrank, or grew by more than the counter did.
func checkTallies(owner string, was map[string]int64, is *admission.Counter, grew int64) error {
	for name, n := range is.Taken {
		if n < was[name] || n-was[name] > grew {
			return refuse("tally %s of counter %s of %s went from %d to %d while %d were taken",
				name, is.Window, owner, was[name], n, grew)
		}
	}
	for name := range was {
		if _, kept := is.Taken[name]; !kept {
			return refuse("tally %s of counter %s of %s is gone", name, is.Window, owner)
		}
	}
	return nil
}
