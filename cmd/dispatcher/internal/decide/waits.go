package decide

import (
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// passes is when a passing exclusion on channel c ends for this message, which queues behind the
// messages of this claim that already wait for the same.
func (a *assigner) passes(x *exclusion, c int) time.Time {
	switch {
	case x.limit != nil && x.limit.Counter.Unit == admission.Money:
		return Earlier(a.hasRoom(x, c), a.now.Add(lookForMoney))
	case x.limit != nil:
		return a.hasRoom(x, c)
	case x.reason == NoActive:
		bound := max(a.states[c].Gate.Active.Max, 1)
		return a.now.Add(lookForActive * time.Duration(1+a.queuedOn[c]/bound))
	case x.reason == InFlight, x.reason == Bulkhead:
		return a.now.Add(a.roomAgain(x.reason, c))
	case x.reason == Throttled && a.states[c] != nil && a.states[c].Gate.Ease.Until.After(a.now):
		return a.states[c].Gate.Ease.Until
	case x.reason == Busy:
		return a.now.Add(lookForActive) // another process may have a shorter queue
	}
	return a.now.Add(readyRetry)
}

// roomAgain is after how long a message checks again whether this process may have more in flight
// on channel c. Answers wake waiting messages sooner. Without answers, roomSpread messages check in
// each interval, however many wait: a queue of 10 000 that checked every second would load the
// database for nothing. lookForRoom bounds the wait, because the messages ahead may be gone.
func (a *assigner) roomAgain(reason string, c int) time.Duration {
	every := lookForActive
	if reason == Bulkhead {
		every = readyRetry
	}
	ahead := a.queuedOn[c]
	if a.snapshot.Rooms != nil {
		ahead += a.snapshot.Rooms[c].Queue
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
func (a *assigner) hasRoom(x *exclusion, c int) time.Time {
	if x.never() {
		return a.now.Add(lookForRoute)
	}
	counter, before := x.limit.Counter, a.queued[x.limit.Counter]/eager
	window := time.Duration(counter.Window)
	if x.limit.Why == admission.Full && !counter.Paced() {
		return x.limit.When.Add(window * time.Duration(before/max(counter.Limit.Max, 1)))
	}
	sustained := max(counter.Limit.Max, 1)
	if counter.Sliding {
		sustained = max(sustained-counter.Burst+1, 1)
	}
	rate := a.states[c].Gate.Ease.RateAt(a.now)
	at := x.limit.When.Add(
		time.Duration(float64(before) * float64(window) / (float64(sustained) * rate)),
	)
	if x.limit.Why == admission.Reserved || x.limit.Why == admission.Unshared {
		at = Earlier(at, counter.End(a.routing.Zone)) // then the whole window is free again
	}
	return at
}

// queueFor counts the message among those that wait for a channel, or for one of its limits, and
// returns the name of what it waits for.
func (a *assigner) queueFor(x *exclusion, c int) (on string) {
	name := a.routing.Channels[c].Name
	if x.limit == nil {
		if x.reason == NoActive || x.reason == InFlight || x.reason == Bulkhead {
			a.queuedOn[c]++
		}
		return name
	}
	a.queued[x.limit.Counter] += x.cost
	return x.on(name)
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
