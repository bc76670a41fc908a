package audit

import (
	"slices"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
)

// limited reports whether a limit can have put a reason in the message's way on channel c. What was
// taken of it is not on record, but a limit has to be there.
func (e *edition) limited(t *decide.Task, c int, reason string) bool {
	ch := &e.Routing.Channels[c]
	bound, known := e.Bounds[ch.Name], e.Bounds != nil
	switch reason {
	case decide.NoSlot:
		return !known || bound.Windows
	case decide.NoActive:
		return !known || bound.Active
	case decide.Throttled, decide.Bulkhead, decide.InFlight:
		return true
	case decide.NoShare:
		return !known || decide.Divides(ch.Policy) && (bound.Windows || e.budgeted(t, c))
	}
	return !known || slices.ContainsFunc(e.Limits(t, c), func(l admission.Limit) bool {
		money := l.Unit == admission.Money
		switch reason {
		case decide.NoBudget:
			return money
		case decide.Reserved:
			return len(l.Reserve) > 0
		case decide.TenantLimit:
			return !money && l.Scope.Tenant != ""
		case decide.PrefixLimit:
			return !money && l.Scope.Prefix != ""
		}
		return false
	})
}

// budgeted reports whether channel c has a limit in money for all its messages.
func (e *edition) budgeted(t *decide.Task, c int) bool {
	return slices.ContainsFunc(e.Limits(t, c), func(l admission.Limit) bool { return l.Unit == admission.Money && l.Scope == (admission.Scope{}) })
}
