package ledger

import "slices"

// follow puts a cursor into the circle of a new document, so that nobody is passed over and
// nobody has two turns: before are the route's members among which the cursor stands, after
// those of the new document, both in configured order.
//
// A channel that stays keeps the last turn, at its new place. When it is taken out, the
// turn before it is taken for the last one: that of the nearest channel before it in the
// old circle that is still there, whose successor in the new circle is then whoever would
// have come after the channel. When none is left, the round robin starts anew. A cursor whose
// old circle is not known, because another release put it there, stays as it is.
func (c Cursor) follow(before, after []string) Cursor {
	last := slices.Index(before, c.Channel)
	if place := slices.Index(after, c.Channel); place >= 0 {
		return Cursor{Route: c.Route, Channel: c.Channel, Position: place}
	}
	if last < 0 {
		return c
	}
	for back := 1; back < len(before); back++ {
		channel := before[(last-back+len(before))%len(before)]
		if place := slices.Index(after, channel); place >= 0 {
			return Cursor{Route: c.Route, Channel: channel, Position: place}
		}
	}
	return Cursor{Route: c.Route, Position: -1}
}
