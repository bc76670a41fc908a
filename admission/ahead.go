package admission

import "time"

// Ahead reports whether the counter's window begins later than any decision of now could open one:
// the database's clock was ahead when it was opened, and has been set back since. Until the clock
// has caught up no other window is opened. A window of a second has no release times before that,
// see Moment.near; of a longer one, what is left is given away.
func (c *Counter) Ahead(now time.Time) bool { return c.Start.After(now.Add(farthest)) }

// Restart is the beginning of the window that a limit gets at a time in place of one that is ahead:
// the running one, or the next second, since of the running second nobody knows what left in it. A
// day begins in zone.
func (w Window) Restart(now time.Time, zone *time.Location) time.Time {
	if w == Second {
		return w.End(now, zone)
	}
	return w.Start(now, zone)
}

// FreeAt is what of Free could be taken at a time.
func (c *Counter) FreeAt(now time.Time) int64 {
	if c.Window == Second && c.Ahead(now) {
		return 0
	}
	return c.Free()
}
