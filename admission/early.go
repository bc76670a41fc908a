package admission

import "time"

// secondBefore is the tally of the units that may arrive in the second before the counter's window.
//
// A window of a second is opened before it begins, see Moment.ahead, and what is taken from it
// until then would have to wait for its beginning. If the second before has units left, a message
// counts in both seconds and may leave at once. Wherever it arrives, that second has counted it.
//
// Everything waits where the counter has no such tally, because it is not known what the second
// before has granted: in the first window of a limit, in one that an operator has restarted, and in
// one that a process of a build without the tally has opened.
const secondBefore = "before"

// Before is how many units may arrive in the second before the window; false if that is not known.
func (c *Counter) Before() (units int64, known bool) {
	units, known = c.Taken[secondBefore]
	return units, known
}

// openingTallies are those of a window that begins at start when it is opened. Nothing was granted
// after the counter's present window, or the counter would have moved.
func (c *Counter) openingTallies(start time.Time) map[string]int64 {
	switch {
	case !c.Paced() || c.Start.Unix() <= 0:
		return nil
	case c.Start.Add(time.Duration(c.Window)).Equal(start):
		return map[string]int64{secondBefore: c.Granted}
	}
	return map[string]int64{secondBefore: 0}
}

// early returns the beginning of the second in which the message is counted, if it may leave before
// that; else zero. All limits of a second must count it in the same one, which is the second that
// is stored with the attempt, and no other window may end when it begins.
func early(m *Moment, accounts []Account, n *Need) (start time.Time) {
	for i := range accounts {
		if a := &accounts[i]; a.Window == Second {
			if !start.IsZero() && !a.Start.Equal(start) || !a.early(m, n) {
				return time.Time{}
			}
			start = a.Start
		}
	}
	for i := range accounts {
		if !start.IsZero() && !accounts[i].End(m.Zone).After(start) {
			return time.Time{}
		}
	}
	return start
}

// early reports whether this account lets a message leave before its window of a second.
func (a *Account) early(m *Moment, n *Need) bool {
	units, known := a.Before()
	switch {
	case !m.Earliest.Before(a.Start), m.Earliest.Before(a.Start.Add(-time.Duration(a.Window))):
		return false // it leaves in the window, or before the second before
	case !known, units+a.Cost(n) > a.Limit.Max:
		return false
	case !n.Expires.IsZero() && !a.Start.Before(n.Expires):
		return false // nothing is stored as leaving after it has expired
	case a.Policy != nil:
		return false // the shares are those of the window
	case a.Rate < 1:
		return false // the pace counts on the part of each second without release times
	}
	return true
}
