package admission

import "math"

// Level says how much of a prepaid budget is left.
type Level string

// Levels of a budget.
const (
	Unpaid Level = "unpaid" // nothing was ever topped up
	Enough Level = "enough"
	Low    Level = "low"   // four fifths or more are used
	Spent  Level = "spent" // nothing is left
)

// Levels are all levels.
var Levels = []Level{Unpaid, Enough, Low, Spent}

// Level is the level of a counter whose limit is Prepaid.
func (c *Counter) Level() Level {
	switch most := c.Limit.Max; {
	case most == 0:
		return Unpaid
	case c.Granted >= most:
		return Spent
	case c.Granted >= most-most/5:
		return Low
	}
	return Enough
}

// Closed reports whether the limit, as it stands in the document, lets nothing pass. A prepaid
// budget has no max there, so it is not closed.
func (l *Limit) Closed() bool { return l.Max <= 0 && l.Window != Prepaid }

// Unused is the counter of a limit at the start of a window, for answers without the ledger. A
// prepaid budget then counts as sufficient.
func (l *Limit) Unused() Counter {
	c := Counter{Limit: *l, Max: l.Max}
	if l.Window == Prepaid {
		c.Limit.Max, c.Max = math.MaxInt64/2, math.MaxInt64/2
	}
	return c
}
