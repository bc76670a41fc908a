package admission

import "time"

// Gate is the whole admission state of one channel under policy exact: one shared
// counter for every limit and the active count. Counters must have been rolled to
// the present before Admits or Take is called.
type Gate struct {
	Counters []Counter
	Active   Active
}

// Roll moves every counter into the window that contains now.
func (g *Gate) Roll(now time.Time, zone *time.Location) {
	for i := range g.Counters {
		g.Counters[i].Roll(now, zone)
	}
}

// Admits reports whether a message of so many segments fits under every limit. A
// message is taken whole or not at all.
func (g *Gate) Admits(segments int) bool {
	if !g.Active.Free() {
		return false
	}
	for i := range g.Counters {
		if c := &g.Counters[i]; c.Free() < c.Cost(segments) {
			return false
		}
	}
	return true
}

// Take counts a message that Admits let in. It panics when the message does not
// fit, because the caller then skipped Admits and the limit would be broken.
func (g *Gate) Take(segments int) {
	if !g.Admits(segments) {
		panic("admission: Take without a slot")
	}
	for i := range g.Counters {
		g.Counters[i].Granted += g.Counters[i].Cost(segments)
	}
	g.Active.Count++
}

// Next is the earliest time at which a message that does not fit now could: the
// end of the last window that is full. It is zero when no window is full, which
// means that only the active count is in the way, and that has no timetable.
func (g *Gate) Next(now time.Time, zone *time.Location, segments int) time.Time {
	var next time.Time
	for i := range g.Counters {
		c := &g.Counters[i]
		if c.Free() >= c.Cost(segments) {
			continue
		}
		// The clock may have stepped back behind Start: the end belongs to the counter's window.
		at := now
		if c.Start.After(at) {
			at = c.Start
		}
		if end := c.Window.End(at, zone); end.After(next) {
			next = end
		}
	}
	return next
}
