package dispatch

import (
	"container/heap"
	"slices"
	"time"
)

// agenda orders the flights of one channel by the time at which they may leave. It is pure;
// the worker's feeder owns it.
type agenda struct {
	later byPlace           // whose time is still to come
	due   [queues][]*flight // whose time has come, in the order of their places
}

// Queues of those whose time has come.
const (
	expressQueue = iota // of the first lane, who go before
	otherQueue
	queues
)

// add takes a flight in.
func (a *agenda) add(f *flight, now time.Time) {
	if f.leave.After(now) {
		heap.Push(&a.later, f)
		return
	}
	a.enqueue(f)
}

func (a *agenda) enqueue(f *flight) {
	q := otherQueue
	if f.express {
		q = expressQueue
	}
	a.due[q] = append(a.due[q], f)
}

// advance lets those whose time has come into the queues.
func (a *agenda) advance(now time.Time) {
	for len(a.later) > 0 && !a.later[0].leave.After(now) {
		a.enqueue(heap.Pop(&a.later).(*flight))
	}
}

// next is whose turn it is; nil when nobody's time has come.
func (a *agenda) next() *flight {
	for q := range a.due {
		if len(a.due[q]) > 0 {
			return a.due[q][0]
		}
	}
	return nil
}

// pop takes out the flight that next returns.
func (a *agenda) pop() {
	for q := range a.due {
		if len(a.due[q]) > 0 {
			a.due[q][0] = nil
			a.due[q] = a.due[q][1:]
			return
		}
	}
}

// take takes out the flights that are due and meet a condition.
func (a *agenda) take(meets func(*flight) bool) (out []*flight) {
	for q := range a.due {
		a.due[q] = slices.DeleteFunc(a.due[q], func(f *flight) bool {
			if meets(f) {
				out = append(out, f)
				return true
			}
			return false
		})
	}
	return out
}

// all takes out every flight.
func (a *agenda) all() []*flight {
	out := slices.Concat(a.due[expressQueue], a.due[otherQueue], a.later)
	*a = agenda{}
	return out
}

// waiting is how many are due.
func (a *agenda) waiting() int { return len(a.due[expressQueue]) + len(a.due[otherQueue]) }

// soonest is when the time of the next one comes; false when none is still to come.
func (a *agenda) soonest() (time.Time, bool) {
	if len(a.later) == 0 {
		return time.Time{}, false
	}
	return a.later[0].leave, true
}

// byPlace is a heap of flights.
type byPlace []*flight

var _ heap.Interface = (*byPlace)(nil)

func (p byPlace) Len() int           { return len(p) }
func (p byPlace) Less(i, j int) bool { return p[i].leave.Before(p[j].leave) }
func (p byPlace) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

// Push adds a flight.
func (p *byPlace) Push(f any) { *p = append(*p, f.(*flight)) }

// Pop takes the last one.
func (p *byPlace) Pop() any {
	n := len(*p) - 1
	f := (*p)[n]
	(*p)[n] = nil
	*p = (*p)[:n]
	return f
}
