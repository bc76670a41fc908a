package admission

import "time"

// laneTally is the tally of a lane that has a reserve.
func laneTally(lane string) string { return "lane:" + lane }

// reserve is how many units of a whole window are kept for a lane.
func (l *Limit) reserve(lane string) int64 {
	for _, r := range l.Reserve {
		if r.Lane == lane {
			return portion(l.Max, r.Percent, 100)
		}
	}
	return 0
}

// Reserved is how many units of this window are reserved for lanes and not yet taken by them,
// before the decay. Reports show it beside what is free, so that it is not taken for waste.
func (c *Counter) Reserved() int64 {
	var units int64
	for _, r := range c.Reserve {
		units += c.unused(r.Lane)
	}
	return min(units, c.Free())
}

// unused is what a lane has not taken yet of its reserve.
func (c *Counter) unused(lane string) int64 {
	return max(c.reserve(lane)-c.Taken[laneTally(lane)], 0)
}

// Kept is how many units the reserves of other lanes keep from a lane now. They decay towards the
// last decision about this window, not towards its end: a message that comes later takes its slot
// from the next window.
func (c *Counter) Kept(lane string, m *Moment) int64 {
	units := c.unusedByOthers(lane)
	if units == 0 {
		return 0
	}
	return c.decayed(units, m.closes(c).Sub(m.Now), m)
}

// unusedByOthers is what all lanes but one have not taken yet of their reserves.
func (c *Counter) unusedByOthers(lane string) int64 {
	var units int64
	for _, r := range c.Reserve {
		if r.Lane != lane {
			units += c.unused(r.Lane)
		}
	}
	return units
}

// decayed is what is still reserved of units when that much time is left of the window.
func (c *Counter) decayed(units int64, left time.Duration, m *Moment) int64 {
	last := c.End(m.Zone).Sub(c.Start) / decay
	switch {
	case left >= last:
		return units
	case left <= c.hurry():
		return 0
	}
	return portion(units, int64(max(left, 0)), int64(last))
}

// hurry is the last part of a window without a pace, in which its reserves are 0. If they decayed
// only at the very end, attempts for the freed slots could not arrive in the window.
func (c *Counter) hurry() time.Duration {
	if c.Paced() && !c.Sliding {
		return 0
	}
	return 2 * travel
}

// released is when the reserves of other lanes will have decayed so far that a message of this cost
// finds room. It assumes that there is room without any reserve.
func (c *Counter) released(lane string, cost int64, m *Moment) time.Time {
	units, spare := c.unusedByOthers(lane), c.Free()-cost
	last := c.End(m.Zone).Sub(c.Start) / decay
	left := max(time.Duration(portion(spare+1, int64(last), units)), c.hurry())
	for left > 0 && c.decayed(units, left, m) > spare {
		left--
	}
	return m.closes(c).Add(-left)
}
