package ledger

import "dispatcher/admission"

// check refuses decisions that do not fit what was shown. The database's constraints
// catch a limit that is broken; these checks catch an attempt that took no slot at
// all, which no constraint could see.
func check(seen *Seen, before []gateBefore, turns []Cursor, d *Decisions) error {
	if len(d.Each) != len(seen.Messages) {
		return refuse("%d decisions for %d messages", len(d.Each), len(seen.Messages))
	}
	taken := make(map[string]*use, len(seen.Channels))
	for i := range seen.Channels {
		taken[seen.Channels[i].Name] = &use{}
	}
	for i := range d.Each {
		if err := checkOne(&seen.Messages[i], seen.Fates[i], &d.Each[i]); err != nil {
			return err
		}
		if d.Each[i].State != Sending {
			continue
		}
		u := taken[d.Each[i].Attempt.Channel]
		if u == nil {
			return refuse("an attempt goes to channel %q, which the claim has not locked", d.Each[i].Attempt.Channel)
		}
		u.messages++
		u.segments += int64(d.Each[i].Attempt.Segments)
	}
	for i := range seen.Channels {
		if err := taken[seen.Channels[i].Name].check(before[i], &seen.Channels[i]); err != nil {
			return err
		}
	}
	return checkCursors(seen, turns, d)
}

// checkOne refuses a decision that its message cannot take.
func checkOne(m *Message, fate Fate, d *Decision) error {
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
		if fate == Fresh && m.State != Sending {
			return refuse("a message that was stored as %s cannot be sent in the same claim", m.State)
		}
	case Waiting:
		if d.NextAt.IsZero() {
			return refuse("a message waits without a time")
		}
	case Failed, Rejected:
	case Scheduled, Retry, Accepted, Delivered, Undelivered, Unknown, Dead:
		return refuse("a claim cannot put a message into state %s", d.State)
	default:
		return refuse("state %q does not exist", d.State)
	}
	if fate != Fresh && fate != Due {
		return refuse("a message that another claim owns was decided upon")
	}
	return nil
}

// use is what the decisions give to one channel.
type use struct{ messages, segments int64 }

// check compares what was given to the channel with what was taken from its counters.
func (u *use) check(before gateBefore, after *ChannelState) error {
	if got := after.Gate.Active.Count - before.active; got != u.messages {
		return refuse("channel %s got %d attempts and its active count grew by %d", after.Name, u.messages, got)
	}
	if len(after.Gate.Counters) != len(before.counters) {
		return refuse("channel %s had %d counters and now has %d", after.Name, len(before.counters), len(after.Gate.Counters))
	}
	for i := range after.Gate.Counters {
		was, is := before.counters[i], after.Gate.Counters[i]
		if !is.Limit.Equal(&was.Limit) || is.Start.Before(was.Start) {
			return refuse("counter %s of channel %s was replaced or moved back", was.Window, after.Name)
		}
		want, most := u.messages, was.Limit.Max
		if is.Unit == admission.Segments {
			want = u.segments
		}
		if is.Start.Equal(was.Start) {
			want, most = want+was.Granted, was.Max
		}
		if is.Max != most {
			return refuse("counter %s of channel %s allows %d and should allow %d", is.Window, after.Name, is.Max, most)
		}
		if is.Granted != want {
			return refuse("counter %s of channel %s stands at %d and should be at %d", is.Window, after.Name, is.Granted, want)
		}
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
