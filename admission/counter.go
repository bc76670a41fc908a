package admission

import "time"

// Counter is the shared count of one Limit: the row that every process locks
// before it takes slots.
//
// Invariant, repeated as a CHECK in the database: 0 <= Granted <= Max.
type Counter struct {
	Limit
	// Start is the beginning of the window that Granted belongs to; it never moves back.
	Start time.Time
	// Granted is what has been admitted in this window.
	Granted int64
	// Max is what may be granted in this window. It differs from Limit.Max only
	// after the limit was lowered below Granted in mid-window: then it stays at
	// Granted until the window ends.
	Max int64
}

// Roll moves the counter into the window that contains now and reports whether it
// moved. A clock that stepped back leaves the counter in its later window, so that
// no slot is handed out twice.
func (c *Counter) Roll(now time.Time, zone *time.Location) bool {
	start := c.Window.Start(now, zone)
	if !start.After(c.Start) {
		return false
	}
	c.Start, c.Granted, c.Max = start, 0, c.Limit.Max
	return true
}

// Cost is what a message of so many segments takes from this counter.
func (c *Counter) Cost(segments int) int64 {
	if c.Unit == Segments {
		return int64(segments)
	}
	return 1
}

// Free is how many units are left in the current window.
func (c *Counter) Free() int64 { return max(c.Max-c.Granted, 0) }

// Active is the shared count of attempts under way on one channel.
//
// Invariant, repeated as a CHECK in the database: 0 <= Count, and Count <= Max
// unless Max is 0, which means no bound.
type Active struct {
	Max   int64
	Count int64
}

// Free reports whether one more attempt may start.
func (a Active) Free() bool { return a.Max == 0 || a.Count < a.Max }
