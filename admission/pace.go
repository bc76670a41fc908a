package admission

import "time"

// pace is the time between two units of the limit under steady demand; 0 when it has no pace, or
// one below a nanosecond.
func (l *Limit) pace() time.Duration {
	switch {
	case l.Max <= 0:
		return 0
	case l.Sliding:
		return time.Duration(portion(1, l.span(), l.Sustained()))
	case l.Paced():
		return l.even()
	}
	return 0
}

// even is the step of a paced window whose release times are spread over the whole window.
func (l *Limit) even() time.Duration {
	window := time.Duration(l.Window)
	return (window - window/guard) / time.Duration(max(l.Max, 1))
}

// repace converts a next release time that was set at another pace to the limit's current pace, so
// that a change of the limit takes effect at once.
func (a *Account) repace(m *Moment) {
	pace := a.pace()
	if pace == 0 || pace == a.Pace {
		return
	}
	next := a.Next
	if a.Sliding {
		next = a.rescaled(m)
	} else {
		next = earlier(next, m.Earliest.Add(a.mostAhead(m, pace)))
	}
	if !next.Equal(a.Next) {
		a.Next, a.Pace = next, pace
	}
}

// mostAhead is how far ahead the next release time of a paced window may be. At a slower pace than
// before, it stays after those already given out.
func (a *Account) mostAhead(m *Moment, pace time.Duration) time.Duration {
	if pace < a.Pace {
		return pace
	}
	return max(pace, m.reach())
}

// rescaled is Next of a sliding limit whose pace has changed. Units already counted keep counting.
// Next is set so that no span holds more units than the larger of the former and the new limit:
// otherwise the burst of the new limit could follow directly on units that left at a faster former
// pace. Of the former limit only the pace is known. So after a limit was lowered, its burst may be
// unavailable for longer than necessary.
//
// Units whose release times lie ahead still leave at the former pace. If the new pace is faster,
// they count for that much longer, which is less than the horizon.
//
// The first unit is delayed by at most one span, since no span then holds units of both limits. A
// limit that was not sliding, or has no release time yet, starts with what its window has granted,
// up to one burst.
func (a *Account) rescaled(m *Moment) time.Time {
	held := min(a.Granted, a.burst())
	switch {
	case a.Pace > 0:
		held = a.held(m)
	case !a.Next.IsZero():
		return a.Next
	}
	if held <= 0 {
		return a.Next
	}
	next := m.Now.Add(a.heldLonger(m)).Add(time.Duration(portionUp(held, a.span(), a.Sustained())))
	first := m.Earliest.Add(m.reach() + time.Duration(a.span()))
	return earlier(next, first.Add(time.Duration(portion(a.burst()-1, a.span(), a.Sustained()))))
}

// heldLonger is how much longer units with release times ahead count than they would at the new
// pace, because they still leave at the former, slower pace.
func (a *Account) heldLonger(m *Moment) time.Duration {
	pace := a.pace()
	if a.Pace <= pace {
		return 0
	}
	last := min(a.Next.Sub(m.Now)-a.Pace, m.commitLatency()+m.reach())
	return max(last, 0) - time.Duration(portion(int64(max(last, 0)), int64(pace), int64(a.Pace)))
}

// held is how many units a sliding limit starts with when its pace changes. At the former pace, no
// more than recent units left within the last span.
func (a *Account) held(m *Moment) int64 {
	ahead, former := int64(a.Next.Sub(m.Now)), a.span()/int64(a.Pace)
	recent := portionUp(max(ahead+a.span(), 0), 1, int64(a.Pace))
	return max(portionUp(max(ahead, 0), 1, int64(a.Pace)), a.burst()+recent-1-max(a.Limit.Max, former))
}
