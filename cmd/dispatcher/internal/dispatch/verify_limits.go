package dispatch

import (
	"slices"

	"dispatcher/admission"
)

// counted lists the limits of the version that count a message on channel c.
func (e *edition) counted(t *task, c int) []admission.Limit {
	x := e.counters.index
	all := slices.Clone(x.own[c])
	for _, place := range x.over.find(x.on[c].find(nil, t.row.Tenant, t.msg.To), t.row.Tenant, t.msg.To) {
		all = append(all, x.narrower[place].limits...)
	}
	return all
}

// limited reports whether a limit can have put a reason in the message's way on channel c. What was
// taken of it is not on record, but a limit has to be there.
func (e *edition) limited(t *task, c int, reason string) bool {
	ch := &e.routing.Channels[c]
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
	return !known || slices.ContainsFunc(e.counted(t, c), func(l admission.Limit) bool {
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
	return slices.ContainsFunc(e.counted(t, c), func(l admission.Limit) bool { return l.Unit == admission.Money && l.Scope == (admission.Scope{}) })
}

// never reports whether a limit of the version leaves the message no place on channel c in any
// window: a first choice is not waited for then.
func (e *edition) never(t *task, c int) bool {
	need := e.need(t, &e.routing.Channels[c])
	return slices.ContainsFunc(e.counted(t, c), func(l admission.Limit) bool {
		empty := admission.Counter{Limit: l, Max: l.Max}
		_, o := admission.Fit(&e.moment, []admission.Account{{Counter: &empty, Rate: 1}}, &need)
		return o != nil && o.When.IsZero()
	})
}
