package decide

import (
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// passes is when an exclusion that passes is over on channel c, for the message that comes behind
// those of this claim that already wait for the same.
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
	return a.now.Add(lookAgain)
}

// roomAgain is after how long a message looks whether this process may have more under way on
// channel c. Answers wake those who wait sooner. Without them roomSpread messages look again in
// each interval, however many wait: a queue of 10 000 that looked again every second would keep the
// database busy for nothing. The last interval keeps a message from sleeping for long when others
// are gone.
func (a *assigner) roomAgain(reason string, c int) time.Duration {
	every := lookForActive
	if reason == Bulkhead {
		every = lookAgain
	}
	ahead := a.queuedOn[c]
	if a.snapshot.Rooms != nil {
		ahead += a.snapshot.Rooms[c].Queue
	}
	return min(every*time.Duration(1+ahead/roomSpread), lookForRoom)
}

// roomSpread is how many messages that wait for one channel look again in one interval.
const roomSpread = 100

// eager is how many times as many messages as a limit gives are looked at again for it: one that
// has gone elsewhere, or has expired, leaves no slot unused while others wait.
const eager = 2

// hasRoom is when the limit has room for the message. Those that wait for the same limit are spread
// by what it gives, so that a long queue is not looked at again in full when its window starts.
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
		at = Earlier(at, counter.End(a.routing.Zone)) // then all of it is there again
	}
	return at
}

// queueFor counts the message among those that wait for a channel, or for one of its limits, and
// names that.
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

// maxWaits is how many waits of a message are told apart.
const maxWaits = 8

// addWait adds the wait that is over to those before. What finds no entry of its own any more is
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
