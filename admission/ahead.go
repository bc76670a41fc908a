package admission

import "time"

// Ahead reports whether the counter's window begins later than any process can open one at now.
// This happens when the database's clock was ahead and has been set back. Until the clock has
// caught up, no other window is opened. A window of a second has no release times before the
// second before it, see Moment.near; the rest of a longer window can be used.
func (c *Counter) Ahead(now time.Time) bool { return c.Start.After(now.Add(farthest)) }

// Restart is the start of the window that replaces one that is ahead: the current window, or for a
// limit of a second the next one, because it is not known what has left in the current second. A
// day begins at midnight in zone.
func (w Window) Restart(now time.Time, zone *time.Location) time.Time {
	if w == Second {
		return w.End(now, zone)
	}
	return w.Start(now, zone)
}

// FreeAt is how many of the Free units can be taken at now.
func (c *Counter) FreeAt(now time.Time) int64 {
	if c.Window == Second && c.Ahead(now) {
		return 0
	}
	return c.Free()
}
