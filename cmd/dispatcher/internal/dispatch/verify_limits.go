package dispatch

import (
	"slices"

	"dispatcher/admission"
)

// limited reports whether a limit can have put a reason in the message's way on channel c. What was
// taken of it is not on record, but a limit has to be there.
func (e *edition) limited(t *task, c int, reason string) bool {
	ch := &e.Routing.Channels[c]
	bound, known := e.Bounds[ch.Name], e.Bounds != nil
	switch reason {
	case noSlot:
		return !known || bound.Windows
	case noActive:
		return !known || bound.Active
	case throttled, bulkhead, inFlight:
		return true
	case noShare:
		return !known || divides(ch.Policy) && (bound.Windows || e.budgeted(t, c))
	}
	return !known || slices.ContainsFunc(e.Limits(t, c), func(l admission.Limit) bool {
		money := l.Unit == admission.Money
		switch reason {
		case noBudget:
			return money
		case reserved:
			return len(l.Reserve) > 0
		case tenantLimit:
			return !money && l.Scope.Tenant != ""
		case prefixLimit:
			return !money && l.Scope.Prefix != ""
		}
		return false
	})
}

// budgeted reports whether channel c has a limit in money for all its messages.
func (e *edition) budgeted(t *task, c int) bool {
	return slices.ContainsFunc(e.Limits(t, c), func(l admission.Limit) bool { return l.Unit == admission.Money && l.Scope == (admission.Scope{}) })
}
