package admission

import "time"

// secondBefore is the tally of the units that may arrive in the second before the counter's window.
//
// A window of a second is opened before it begins, see Moment.ahead, and what is taken from it until
// then would have to wait for its beginning. If the second before has units left, a message counts
// in both seconds and may leave at once. Wherever it arrives, that second has counted it.
//
// There is no such tally, and everything waits, where it is not known what the second before has
// granted: in the first window of a limit, and in one that an operator has restarted.
const secondBefore = "before"

// beginning is what a window that begins at start has counted separately when it is opened. Nothing
// was granted after the counter's present window, or the counter would have moved.
func (c *Counter) beginning(start time.Time) map[string]int64 {
	switch {
	case !c.Paced() || c.Start.Unix() <= 0:
		return nil
	case c.Start.Add(time.Duration(c.Window)).Equal(start):
		return map[string]int64{secondBefore: c.Granted}
	}
	return map[string]int64{secondBefore: 0}
}

// Before is how many units may arrive in the second before the window; false if that is not known.
func (c *Counter) Before() (units int64, known bool) {
	units, known = c.Taken[secondBefore]
	return units, known
}

// early reports whether a message may leave at a time before the counter's window, because the
// second before has room for it too. It may not where a policy divides the slots, because the
// shares are those of the window, nor at a lowered rate: its pace counts on the part of each second
// without release times.
func (a *Account) early(cost int64, at time.Time) bool {
	units, known := a.Before()
	return known && a.Policy == nil && a.Rate >= 1 && units+cost <= a.Limit.Max &&
		!at.Before(a.opens(at))
}

// opens is when the first second begins in which an attempt that may leave from at on is counted:
// the window's or the one before.
func (a *Account) opens(at time.Time) time.Time {
	if at.Before(a.Start) {
		return a.Start.Add(-time.Duration(a.Window))
	}
	return a.Start
}
