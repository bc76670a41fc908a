package dispatch

import (
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// closed reports whether the counter never has room for the message: its limit is 0, or less than the message takes.
func (b *blockage) closed() bool { return b.counter != nil && b.when.IsZero() }

// on names the counter, which stands in the way of a channel.
func (b *blockage) on(channel string) string {
	if b.over {
		channel = ""
	}
	return b.counter.Key().On(channel)
}

// passes is when a passing reason is over on channel c, for the message that comes behind those
// of this claim that already wait for the same.
func (a *assigner) passes(reason string, c int, b *blockage) time.Time {
	switch {
	case b.counter != nil && b.counter.Unit == admission.Money:
		return earlier(a.hasRoom(c, b), a.now.Add(lookForMoney))
	case b.counter != nil:
		return a.hasRoom(c, b)
	case reason == noActive:
		bound := max(a.states[c].Gate.Active.Max, 1)
		return a.now.Add(lookForActive * time.Duration(1+a.crowd[c]/bound))
	case reason == inFlight, reason == bulkhead:
		return a.now.Add(a.roomAgain(reason, c))
	case reason == throttled && a.states[c] != nil && a.states[c].Gate.Ease.Until.After(a.now):
		return a.states[c].Gate.Ease.Until
	case reason == busy:
		return a.now.Add(lookForActive) // another process may have a shorter queue
	}
	return a.now.Add(lookAgain)
}

// roomAgain is after how long a message looks whether this process may have more under way on channel
// c. Answers wake those who wait sooner. Without them roomSpread messages look again in each interval,
// however many wait: a queue of 10 000 that looked again every second would keep the database busy
// for nothing. The last interval keeps a message from sleeping for long when others are gone.
func (a *assigner) roomAgain(reason string, c int) time.Duration {
	every := lookForActive
	if reason == bulkhead {
		every = lookAgain
	}
	ahead := a.crowd[c]
	if a.stand.rooms != nil {
		ahead += a.stand.rooms[c].queue
	}
	return min(every*time.Duration(1+ahead/roomSpread), lookForRoom)
}

// roomSpread is how many messages that wait for one channel look again in one interval.
const roomSpread = 100

// eager is how many times as many messages as a limit gives are looked at again for it: one that has gone
// elsewhere, or has expired, leaves no slot unused while others wait.
const eager = 2

// hasRoom is when a counter has room for the message. Those that wait for the same counter are spread
// by what it gives, so that a long queue is not looked at again in full when its window starts.
func (a *assigner) hasRoom(c int, b *blockage) time.Time {
	if b.closed() {
		return a.now.Add(lookForRoute)
	}
	counter, before := b.counter, a.queued[b.counter]/eager
	window := time.Duration(counter.Window)
	if b.why == admission.Full && !counter.Paced() {
		return b.when.Add(window * time.Duration(before/max(counter.Limit.Max, 1)))
	}
	sustained := max(counter.Limit.Max, 1)
	if counter.Sliding {
		sustained = max(sustained-counter.Burst+1, 1)
	}
	rate := a.states[c].Gate.Ease.RateAt(a.now)
	at := b.when.Add(time.Duration(float64(before) * float64(window) / (float64(sustained) * rate)))
	if b.why == admission.Reserved || b.why == admission.Unshared {
		at = earlier(at, counter.End(a.routing.Zone)) // then all of it is there again
	}
	return at
}

// queueFor counts the message among those that wait for a channel, or for one of its limits, and names that.
func (a *assigner) queueFor(reason string, c int, b *blockage) (on string) {
	name := a.routing.Channels[c].Name
	if b.counter == nil {
		if reason == noActive || reason == inFlight || reason == bulkhead {
			a.crowd[c]++
		}
		return name
	}
	a.queued[b.counter] += b.cost
	return b.on(name)
}

// maxWaits is how many waits of a message are told apart.
const maxWaits = 8

// addWait adds the wait that is over to those before. What finds no entry of its own any more is added to the last.
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
