package admission

import "time"

// laneTally is the tally of a lane that has a reserve.
func laneTally(lane string) string { return "lane:" + lane }

// reserve is how many units of a whole window are kept for a lane.
func (l *Limit) reserve(lane string) int64 {
	for _, r := range l.Reserve {
		if r.Lane == lane {
			return l.Max * r.Percent / 100
		}
	}
	return 0
}

// Reserved is how many units of this window are kept for lanes and not yet taken by
// them, before they decay. Operators and auditors see it beside what is free: it is no waste.
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

// Kept is how many units the reserves of other lanes keep from a lane now, rounded up.
func (c *Counter) Kept(lane string, m *Moment) int64 {
	var units int64
	for _, r := range c.Reserve {
		if r.Lane != lane {
			units += c.unused(r.Lane)
		}
	}
	if units == 0 {
		return 0
	}
	end := c.End(m.Zone)
	last := end.Sub(c.Start) / decay
	left := end.Sub(m.Now)
	if left >= last {
		return units
	}
	left = max(left, 0)
	return (units*int64(left) + int64(last) - 1) / int64(last)
}

// released is when the reserves keep less than they do now.
func (c *Counter) released(m *Moment) time.Time {
	end := c.End(m.Zone)
	last := end.Sub(c.Start) / decay
	return earlier(end, later(end.Add(-last), m.Now).Add(last/decay))
}
