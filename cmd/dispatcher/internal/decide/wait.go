package decide

import (
	"time"

	"dispatcher/ledger"
	"dispatcher/selector"
)

// Pauses of waiting messages whose next try does not depend on the end of a window.
const (
	readyRetry    = time.Second            // no channel is ready
	lookForActive = 200 * time.Millisecond // only the active count excludes it
	lookForRoute  = 30 * time.Second       // its route is gone or all of it is switched off
	// Resuming wakes what is paused, so this is only a fallback.
	lookWhenPaused = time.Hour
	lookForRoom    = 30 * time.Second // the longest wait for room; any answer may make room
	longestRound   = time.Minute      // between rounds over channels that all refused
	lookForMoney   = time.Minute      // what other messages do not spend may come back at any time
	lookUrgently   = 5 * time.Second  // when the deadline is near
	shortHold      = 10 * time.Second // for a first choice that answers promptly, on every route
)

// delay is until when and why a message waits, and what it waits for.
type delay struct {
	at  time.Time
	why string
	on  string // channel or scope, as ledger.Wait.On
}

// noMember is the decision about a message that no member of its route can take now. The message
// fails only when nothing can remedy its exclusions (see remedyFor), none of its selectors expires,
// and it is not repeated under its key.
//
// A new round begins when every member that may take the message has refused it or cannot take it
// soon: the outage of another one must not keep the message from a channel that works again.
func (a *assigner) noMember(t *Task, l *candidateOrder) ledger.Decision {
	var remedies remedy
	for i := range l.exclusions {
		remedies |= remedyFor(l.exclusions[i].reason)
	}
	expiry := a.firstExpiry(t, l)
	record := a.record(t, l)
	var until delay
	round := delay{at: a.now.Add(roundPause(t.Row.Rounds)), why: reasonTried}
	// goOn ends a message that was accepted when all others have refused it, so its round begins last.
	again, newRound := remedies&byRound != 0 && t.was != ledger.Accepted, false
	switch {
	case remedies&byItself != 0:
		var opens bool
		until, opens = a.earliest(t, l)
		if again && (!opens || !until.at.Before(round.at)) {
			round.on = until.on
			until, newRound = round, true
		}
	case again, remedies&^byNobody == byRound:
		until, newRound = round, true
	case remedies&byOperator != 0:
		until = delay{at: a.now.Add(lookForRoute), why: a.switchedOff(t, l), on: t.Row.Pinned}
	case expiry.IsZero() && t.Row.SameKey != "":
		return a.untilResolved(t)
	case expiry.IsZero():
		return ledger.Decision{
			State: ledger.Failed, Reason: reasonNoChannel, Plan: t.Row.Plan, Seen: record,
		}
	}
	if !expiry.IsZero() && (until.why == "" || expiry.Before(until.at)) {
		until, newRound = delay{at: expiry, why: unfit}, false
	}
	d := a.wait(t, until, record)
	d.NewRound = newRound
	return d
}

// switchedOff is the reason of a message that waits for operators: for a message pinned to one
// channel, the exclusion reason of that channel; for any other, that its channels are switched off.
func (a *assigner) switchedOff(t *Task, l *candidateOrder) string {
	if t.Row.Pinned == "" {
		return SwitchedOff
	}
	for i := range l.exclusions {
		if reason := l.exclusions[i].reason; reason != PinnedElsewhere {
			return reason
		}
	}
	return Removed
}

// firstExpiry is the earliest time at which a selector that excludes a channel expires. Channels
// that fail a selector without expiry do not count. It is zero when no channel counts.
func (a *assigner) firstExpiry(t *Task, l *candidateOrder) time.Time {
	var first time.Time
	for i := range l.exclusions {
		if l.exclusions[i].reason != unfit {
			continue
		}
		ch := &a.routing.Channels[t.Route.Members[l.candidates[i].Index]]
		if left, ok := expiry(l.selectors, ch); ok {
			if at := t.Row.ReceivedAt.Add(left); first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	return first
}

// expiry is the least age of the message at which one of the selectors that the channel fails
// expires. ok is false when the channel fails one that never expires.
func expiry(selectors []selector.Selector, ch *Channel) (least time.Duration, ok bool) {
	for _, s := range selectors {
		if ch.Meets(s) {
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

// roundPause is the pause between rounds in which all channels refused. It doubles from one second.
func roundPause(rounds int) time.Duration {
	return min(time.Second<<min(rounds, 10), longestRound)
}

// earliest is when the first of the considered channels may have room again, with its exclusion
// reason. A channel that is not ready may become so at any moment, so it is tried again soon. opens
// says that there is room then, unless others take it: a limit has room, a pause that the provider
// asked for is over, or attempts in flight on a channel that answers are answered.
func (a *assigner) earliest(t *Task, l *candidateOrder) (first delay, opens bool) {
	best := -1
	for i := range l.exclusions {
		excluded := &l.exclusions[i]
		if remedyFor(excluded.reason) != byItself {
			continue
		}
		at := a.passes(excluded, t.Route.Members[l.candidates[i].Index])
		if best < 0 || at.Before(first.at) {
			first, best = delay{at: at, why: excluded.reason}, i
		}
	}
	excluded := &l.exclusions[best]
	first.on = a.queueFor(excluded, t.Route.Members[l.candidates[best].Index])
	known := excluded.limit != nil || excluded.reason == InFlight || excluded.reason == Throttled
	return first, known && !excluded.never()
}

// holdForFirst reports whether the message waits for its drawn first choice, and until when. It
// waits only for what passes with time, and never for a limit that can have no room.
func (a *assigner) holdForFirst(t *Task, excluded *exclusion) (until delay, ok bool) {
	end := t.Route.HoldEnds(excluded.reason, later(t.Row.ReceivedAt, t.msg.SendAt), t.Row.ExpiresAt)
	if !end.After(a.now) || !IsLimit(excluded.reason) || excluded.never() {
		return delay{}, false
	}
	first := t.Route.Members[t.First]
	until = delay{at: Earlier(end, a.passes(excluded, first)), why: excluded.reason}
	until.on = a.queueFor(excluded, first)
	return until, true
}

// HoldEnds is until when a message waits for its drawn first choice, excluded for the reason why:
// for the route's time, counted from when the message could first be sent. If the first choice
// answers promptly and is only at its in-flight bound, every route waits at least shortHold,
// because a fallback would move traffic away from the agreed shares. Shortly before its deadline a
// message takes any channel.
func (r *Route) HoldEnds(why string, from, expires time.Time) time.Time {
	wait := r.Wait
	if why == InFlight {
		wait = max(wait, shortHold)
	}
	return Earlier(from.Add(wait), expires.Add(-lookUrgently))
}

// held is the record of a message that waits for its first choice: no other channel was considered.
func (a *assigner) held(t *Task, excluded *exclusion) []byte {
	l := a.newOrder()
	defer a.reuse(l)
	l.by = ByWait
	l.candidates = append(l.candidates, a.candidate(t.Route, t.First))
	l.exclusions = append(l.exclusions, *excluded)
	return a.record(t, l)
}

// wait makes the message wait, but not beyond its deadline, nor beyond the time from which it is
// urgent. record is nil when no channel was considered.
func (a *assigner) wait(t *Task, until delay, record []byte) ledger.Decision {
	last := t.Row.ExpiresAt.Add(-urgent)
	if !last.After(a.now) {
		last = Earlier(a.now.Add(lookUrgently), t.Row.ExpiresAt)
	}
	return ledger.Decision{
		State: ledger.Waiting, Reason: until.why, NextAt: Earlier(until.at, last), Plan: t.Row.Plan,
		Seen: record, WaitsFor: until.on,
	}
}

// Earlier is the first of two instants.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
