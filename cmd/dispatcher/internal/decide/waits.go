package decide

import (
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// passes is when a passing exclusion on channel c ends for this message, which queues behind the
// messages of this claim that already wait for the same.
func (a *assigner) passes(e *exclusion, c int) time.Time {
	switch {
	case e.limit != nil && e.limit.Counter.Unit == admission.Money:
		return Earlier(a.hasRoom(e, c), a.now.Add(lookForMoney))
	case e.limit != nil:
		return a.hasRoom(e, c)
	case e.reason == NoActive:
		bound := max(a.states[c].Gate.Active.Max, 1)
		return a.now.Add(lookForActive * time.Duration(1+a.queuedOn[c]/bound))
	case e.reason == InFlight, e.reason == Bulkhead:
		return a.now.Add(a.roomAgain(e.reason, c))
	case e.reason == Throttled && a.states[c] != nil && a.states[c].Gate.Ease.Until.After(a.now):
		return a.states[c].Gate.Ease.Until
	case e.reason == Busy:
		return a.now.Add(lookForActive) // another process may have a shorter queue
	}
	return a.now.Add(readyRetry)
}

// roomAgain is how long a message waits before it checks again whether this process may have more
// in flight on channel c. Answers wake waiting messages sooner. Without answers, roomSpread
// messages check in each interval, however many wait: a queue of 10 000 that checked every second
// would load the database for nothing. lookForRoom bounds the wait, because the messages ahead may
// be gone.
func (a *assigner) roomAgain(reason string, c int) time.Duration {
	every := lookForActive
	if reason == Bulkhead {
		every = readyRetry
	}
	ahead := a.queuedOn[c]
	if a.snapshot.Rooms != nil {
		ahead += a.snapshot.Rooms[c].Waiting
	}
	return min(every*time.Duration(1+ahead/roomSpread), lookForRoom)
}

// roomSpread is how many messages that wait for one channel check again in one interval.
const roomSpread = 100

// eager is how many messages are tried again for each slot that a limit gives. Some have gone
// elsewhere or expired; with more candidates than slots no slot stays unused while others wait.
const eager = 2

// hasRoom is when the limit has room for the message. Messages that wait for the same limit are
// spread by its rate, so that a long queue is not tried in full when the window starts.
func (a *assigner) hasRoom(e *exclusion, c int) time.Time {
	if e.never() {
		return a.now.Add(lookForRoute)
	}
	counter, before := e.limit.Counter, a.queued[e.limit.Counter]/eager
	window := time.Duration(counter.Window)
	if e.limit.Why == admission.Full && !counter.Paced() {
		return e.limit.When.Add(window * time.Duration(before/max(counter.Limit.Max, 1)))
	}
	sustained := max(counter.Sustained(), 1)
	rate := a.states[c].Gate.Ease.RateAt(a.now)
	at := e.limit.When.Add(
		time.Duration(float64(before) * float64(window) / (float64(sustained) * rate)),
	)
	if e.limit.Why == admission.Reserved || e.limit.Why == admission.Unshared {
		at = Earlier(at, counter.End(a.routing.Zone)) // then the whole window is free again
	}
	return at
}

// queueFor counts the message among those that wait for a channel, or for one of its limits, and
// returns the name of what it waits for.
func (a *assigner) queueFor(e *exclusion, c int) (on string) {
	name := a.routing.Channels[c].Name
	if e.limit == nil {
		if e.reason == NoActive || e.reason == InFlight || e.reason == Bulkhead {
			a.queuedOn[c]++
		}
		return name
	}
	a.queued[e.limit.Counter] += e.cost
	return e.on(name)
}

// maxWaits is how many waits of a message are recorded separately.
const maxWaits = 8

// addWait adds a wait that has ended to those before. If all maxWaits entries are in use, it is
// added to the last.
func addWait(before []ledger.Wait, over ledger.Wait) []ledger.Wait {
	waits := append(make([]ledger.Wait, 0, len(before)+1), before...)
	over.For = max(over.For, 0) // the clock may have been set back
	for i := range waits {
		if waits[i].Reason == over.Reason && waits[i].On == over.On {
			waits[i].For += over.For
			return waits
		}
	}
	if len(waits) >= maxWaits {
		waits[len(waits)-1].For += over.For
		return waits
	}
	return append(waits, over)
}
