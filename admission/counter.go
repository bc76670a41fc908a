package admission

import "time"

// Counter is the shared count of one Limit: the row that every process locks before it takes slots.
//
// Invariant, repeated as a CHECK in the database: 0 <= Granted <= Max. It holds for a sliding limit
// too: a calendar window never holds more than any span of its length may.
type Counter struct {
	Limit
	// Start is the beginning of the window that Granted belongs to; it never moves back.
	Start time.Time
	// Granted is what has been admitted in this window.
	Granted int64
	// Max is what may be granted in this window. It differs from Limit.Max only after the limit was
	// lowered below Granted in mid-window: then it stays at Granted until the window ends.
	Max int64
	// Next is the release time of the next unit of a paced limit. For a sliding limit it is the
	// theoretical arrival time of the generic cell rate algorithm (ITU-T I.371). It is kept when the
	// window ends. The zero time means that no unit has to wait.
	Next time.Time
	// Pace is the time between two units for which Next was computed; 0 when that is not known. If
	// the limit has another pace now, Fit converts Next.
	Pace time.Duration
	// Taken counts some of the units in this window separately: those of lanes with a reserve, and
	// those of the pools of a policy. Of a paced limit it also has the units of the second before,
	// see secondBefore. Nil when nothing is counted separately.
	Taken map[string]int64
}

// Roll moves the counter into the window that contains now and reports whether it moved. If the
// clock has stepped back, the counter stays in its later window, so that no slot is given twice.
func (c *Counter) Roll(now time.Time, zone *time.Location) bool {
	start := c.Window.Start(now, zone)
	if !start.After(c.Start) {
		return false
	}
	c.Open(start)
	return true
}

// Open moves the counter into the window that begins at start.
func (c *Counter) Open(start time.Time) {
	c.Start, c.Granted, c.Max, c.Taken = start, 0, c.Limit.Max, c.openingTallies(start)
}

// Cost is what a message takes from this counter.
func (c *Counter) Cost(n *Need) int64 {
	switch c.Unit {
	case Segments:
		return int64(n.Segments)
	case Money:
		return n.Micros
	case Messages:
	}
	return 1
}

// Free is how many units are left in the current window, for all lanes together. After the limit
// was lowered in mid-window, refunds become free only below the new limit.
func (c *Counter) Free() int64 { return max(min(c.Max, c.Limit.Max)-c.Granted, 0) }

// End is when the counter's window ends, even if the clock has stepped back before Start.
func (c *Counter) End(zone *time.Location) time.Time { return c.Window.End(c.Start, zone) }

// lastRelease is the end of the part of the window that has release times.
func (c *Counter) lastRelease(zone *time.Location) time.Time {
	return c.End(zone).Add(-c.guardTime())
}

// guardTime is the last part of a paced window, which has no release times.
func (c *Counter) guardTime() time.Duration {
	if c.Paced() && !c.Sliding {
		return time.Duration(c.Window) / guard
	}
	return 0
}

// count adds units to the tally of that name, if there is a name.
func (c *Counter) count(tally string, units int64) {
	if tally == "" || units == 0 {
		return
	}
	if c.Taken == nil {
		c.Taken = map[string]int64{}
	}
	c.Taken[tally] += units
}

// Tallies name the separate counts in Counter.Taken that a message was added to; empty for none.
type Tallies struct {
	Lane string // of its lane, which has a reserve
	Pool string // of the pool that a policy took it from
}

// Active is the shared count of attempts in flight on one channel.
//
// Invariant, repeated as a CHECK in the database: 0 <= Count, and Count <= Max unless Max is 0,
// which means no bound.
type Active struct {
	Max   int64
	Count int64
}

// Free reports whether one more attempt may start.
func (a Active) Free() bool { return a.Max == 0 || a.Count < a.Max }
