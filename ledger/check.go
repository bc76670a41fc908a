package ledger

// check refuses decisions that do not fit what was shown. The database's constraints
// catch a limit that is broken; these checks catch an attempt that took no slot at
// all, which no constraint could see.
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
	return checkCursors(seen, was.turns, d)
}

// checkOne refuses a decision that its message cannot take.
func checkOne(m *Message, fate Intake, d *Decision) error {
	switch d.State {
	case "":
		if fate == Fresh && m.State == Sending {
			return refuse("a new message was left in state sending without an attempt")
		}
		return nil
	case Sending:
		if d.Attempt.Number != m.Attempts+1 {
			return refuse("attempt %d follows %d attempts", d.Attempt.Number, m.Attempts)
		}
		if err := checkTicket(m, &d.Attempt); err != nil {
			return err
		}
		if fate == Fresh && m.State != Sending {
			return refuse("a message that was stored as %s cannot be sent in the same claim", m.State)
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
	case Scheduled, Retry, Accepted, Delivered, Undelivered, NoReceipt, Dead:
		return refuse("a claim cannot put a message into state %s", d.State)
	default:
		return refuse("state %q does not exist", d.State)
	}
	if fate != Fresh && fate != Due {
		return refuse("a message that another claim owns was decided upon")
	}
	return nil
}

// checkTicket refuses a ticket that is not the one that was shown: its slot is not this message's.
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

// checkCursors refuses a cursor that moved to a channel which got no attempt for its
// route: the turn of a channel is over when it was given something, never before.
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
			return refuse("the cursor of route %s moved to channel %q, which got no attempt for it", c.Route, c.Channel)
		}
	}
	return nil
}

// gave reports whether a message of the route got an attempt on the channel.
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
		if plan.Route == route {
			return true
		}
	}
	return false
}
