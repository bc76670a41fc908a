package dispatch

import (
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Times between looks at a message that no window's end tells when to try.
const (
	lookAgain     = time.Second            // no channel is ready
	lookForActive = 200 * time.Millisecond // only the active count is in the way
	lookForRoute  = 30 * time.Second       // its route is gone or all of it is switched off
	longestRound  = time.Minute            // between rounds over channels that all refused
)

// nobody decides for a message that no member of its route can take now. It fails only when
// nothing but its own wishes and price are in the way, and none of those wishes expires.
func (a *assigner) nobody(t *task, l *line) ledger.Decision {
	var remedies remedy
	for _, reason := range l.reasons {
		remedies |= remedyFor(reason)
	}
	expiry := a.firstExpiry(t, l)
	record := a.record(t, l)
	at, why, newRound := time.Time{}, "", false
	switch {
	case remedies&byItself != 0:
		at, why = a.earliest(t, l)
	case remedies&byOperator != 0:
		at, why = a.now.Add(lookForRoute), a.switchedOff(t, l)
	case remedies&byRound != 0:
		at, why, newRound = a.now.Add(roundPause(t.row.Rounds)), reasonTried, true
	case expiry.IsZero():
		return ledger.Decision{State: ledger.Failed, Reason: reasonNoChannel, Plan: t.row.Plan, Seen: record}
	}
	if !expiry.IsZero() && (why == "" || expiry.Before(at)) {
		at, why, newRound = expiry, unfit, false
	}
	d := a.wait(t, why, at, record)
	d.NewRound = newRound
	return d
}

// switchedOff is why a message waits for the operators: a message that is held for one
// channel by what is the matter with that, any other because its channels are switched off.
func (a *assigner) switchedOff(t *task, l *line) string {
	if t.row.Pinned == "" {
		return disabled
	}
	for i, reason := range l.reasons {
		if reason != pinnedAway {
			return l.reasons[i]
		}
	}
	return removed
}

// firstExpiry is when the first selector expires that alone, or with others that expire,
// keeps a channel from the message; zero when there is none.
func (a *assigner) firstExpiry(t *task, l *line) time.Time {
	var first time.Time
	for i, reason := range l.reasons {
		if reason != unfit {
			continue
		}
		labels := a.routing.Channels[t.route.Members[l.candidates[i].Index]].Labels
		if left, ok := expiry(l.wishes, labels); ok {
			if at := t.row.ReceivedAt.Add(left); first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	return first
}

// expiry is the least age at which one of the selectors that labels fail expires; false when
// labels fail one that never does.
func expiry(wishes []selector.Selector, labels map[string]selector.Value) (least time.Duration, ok bool) {
	for _, s := range wishes {
		if s.Satisfied(labels) {
			continue
		}
		if s.ExpiresAfter == 0 {
			return 0, false
		}
		if !ok || s.ExpiresAfter < least {
			least, ok = s.ExpiresAfter, true
		}
	}
	return least, ok
}

// roundPause doubles from a second between rounds over channels that all refused.
func roundPause(rounds int) time.Duration {
	return min(time.Second<<min(rounds, 10), longestRound)
}

// earliest is when the first of the considered channels may have room again, and what
// that one lacks. A channel that is not ready may be at any moment, so it is looked at again soon.
func (a *assigner) earliest(t *task, l *line) (at time.Time, why string) {
	full := -1 // the channel whose window is waited for
	for i, reason := range l.reasons {
		if remedyFor(reason) != byItself {
			continue
		}
		next, index := a.now.Add(lookAgain), -1
		switch reason {
		case noSlot:
			index = t.route.Members[l.candidates[i].Index]
			next = a.whenFree(t, index)
		case noActive:
			next = a.now.Add(lookForActive)
		}
		if why == "" || next.Before(at) {
			at, why, full = next, reason, index
		}
	}
	if full >= 0 {
		a.queued[full]++
	}
	return at, why
}

// whenFree estimates when a channel without a slot has one for this message. Those
// that wait for the same channel are spread over the windows to come, so that a long
// queue is not looked at again in full at the start of each window.
func (a *assigner) whenFree(t *task, c int) time.Time {
	need := a.need(t, &a.routing.Channels[c])
	_, o := admission.Fit(&a.moment, a.accounts(t, c), &need)
	if o == nil || o.When.IsZero() {
		return a.now.Add(lookForRoute)
	}
	spread := time.Duration(a.queued[c]*o.Counter.Cost(&need)/max(o.Counter.Limit.Max, 1)) * time.Duration(o.Counter.Window)
	return o.When.Add(spread)
}

// holdForFirst reports whether the route lets the message wait for its drawn first choice,
// and until when. Only obstacles that pass by themselves are waited for.
func (a *assigner) holdForFirst(t *task, why string) (time.Time, bool) {
	end := t.row.ReceivedAt.Add(t.route.Wait)
	if t.route.Wait == 0 || !end.After(a.now) || (why != noSlot && why != noActive && why != throttled) {
		return time.Time{}, false
	}
	at := a.now.Add(lookForActive)
	if why == noSlot {
		first := t.route.Members[t.first]
		at = a.whenFree(t, first)
		a.queued[first]++
	}
	if at.After(end) {
		at = end
	}
	return at, true
}

// held is the record of a message that is held for its first choice: nobody else was looked at.
func (a *assigner) held(t *task, why string) []byte {
	l := &a.line
	*l = line{
		by:         byWait,
		candidates: append(l.candidates[:0], a.candidate(t.route, t.first)),
		reasons:    append(l.reasons[:0], why),
	}
	return a.record(t, l)
}

// wait keeps the message until at, but never beyond its deadline. record is nil when
// nobody was looked at.
func (a *assigner) wait(t *task, reason string, at time.Time, record []byte) ledger.Decision {
	if at.After(t.row.ExpiresAt) {
		at = t.row.ExpiresAt
	}
	return ledger.Decision{State: ledger.Waiting, Reason: reason, NextAt: at, Plan: t.row.Plan, Seen: record}
}
