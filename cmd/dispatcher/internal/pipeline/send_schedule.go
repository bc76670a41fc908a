package pipeline

import (
	"container/heap"
	"slices"
	"time"
)

// sendSchedule orders the attempts of one channel by the time at which they may leave. It is pure;
// only the worker's feeder uses it.
type sendSchedule struct {
	later byRelease              // release time not reached
	due   [queues][]*openAttempt // release time reached, in order of release times
}

// Queues of due attempts.
const (
	expressQueue = iota // of the first lane, sent first
	otherQueue
	queues
)

// add adds an attempt.
func (a *sendSchedule) add(f *openAttempt, now time.Time) {
	if f.leave.After(now) {
		heap.Push(&a.later, f)
		return
	}
	a.enqueue(f)
}

func (a *sendSchedule) enqueue(f *openAttempt) {
	q := otherQueue
	if f.Express {
		q = expressQueue
	}
	a.due[q] = append(a.due[q], f)
}

// advance moves the attempts whose time has come into the queues.
func (a *sendSchedule) advance(now time.Time) {
	for len(a.later) > 0 && !a.later[0].leave.After(now) {
		a.enqueue(heap.Pop(&a.later).(*openAttempt))
	}
}

// next is the attempt to send next; nil when none is due.
func (a *sendSchedule) next() *openAttempt {
	for q := range a.due {
		if len(a.due[q]) > 0 {
			return a.due[q][0]
		}
	}
	return nil
}

// pop removes the attempt that next returns.
func (a *sendSchedule) pop() {
	for q := range a.due {
		if len(a.due[q]) > 0 {
			a.due[q][0] = nil
			a.due[q] = a.due[q][1:]
			return
		}
	}
}

// take removes and returns the due attempts that meet a condition.
func (a *sendSchedule) take(meets func(*openAttempt) bool) (out []*openAttempt) {
	for q := range a.due {
		a.due[q] = slices.DeleteFunc(a.due[q], func(f *openAttempt) bool {
			if meets(f) {
				out = append(out, f)
				return true
			}
			return false
		})
	}
	return out
}

// all removes and returns every attempt.
func (a *sendSchedule) all() []*openAttempt {
	out := slices.Concat(a.due[expressQueue], a.due[otherQueue], a.later)
	*a = sendSchedule{}
	return out
}

// waiting is how many are due.
func (a *sendSchedule) waiting() int { return len(a.due[expressQueue]) + len(a.due[otherQueue]) }

// soonest is when the next attempt becomes due; false when there is none.
func (a *sendSchedule) soonest() (time.Time, bool) {
	if len(a.later) == 0 {
		return time.Time{}, false
	}
	return a.later[0].leave, true
}

// byRelease is a heap of attempts.
type byRelease []*openAttempt

var _ heap.Interface = (*byRelease)(nil)

func (p byRelease) Len() int           { return len(p) }
func (p byRelease) Less(i, j int) bool { return p[i].leave.Before(p[j].leave) }
func (p byRelease) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

// Push adds an attempt.
func (p *byRelease) Push(f any) { *p = append(*p, f.(*openAttempt)) }

// Pop takes the last one.
func (p *byRelease) Pop() any {
	n := len(*p) - 1
	f := (*p)[n]
	(*p)[n] = nil
	*p = (*p)[:n]
	return f
}

// spareTime is how long before its latest time an attempt leaves at the latest, even if that makes
// a burst.
const spareTime = 10 * time.Millisecond

// spread delays the attempts of one claim whose release times passed while it was written. On each
// channel they leave at twice their pace until they have caught up, and not in one burst.
func spread(attempts []*openAttempt, now time.Time) {
	began := make(map[string]time.Time, 8) // the first release time on each channel
	for _, f := range attempts {
		if at, known := began[f.Channel]; !f.leave.IsZero() && (!known || f.leave.Before(at)) {
			began[f.Channel] = f.leave
		}
	}
	for _, f := range attempts {
		from := began[f.Channel]
		if f.leave.IsZero() || !from.Before(now) {
			continue
		}
		at := now.Add(f.leave.Sub(from) / 2)
		if last := f.latest.Add(-spareTime); !f.latest.IsZero() && at.After(last) {
			at = last
		}
		if at.After(f.leave) {
			f.leave = at
		}
	}
}
