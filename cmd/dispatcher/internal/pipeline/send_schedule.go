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
	firstLaneQueue = iota // of the first lane, sent first
	otherQueue
	queues
)

// add adds attempts.
func (s *sendSchedule) add(now time.Time, attempts ...*openAttempt) {
	for _, a := range attempts {
		if a.leave.After(now) {
			heap.Push(&s.later, a)
		} else {
			s.enqueue(a)
		}
	}
}

func (s *sendSchedule) enqueue(a *openAttempt) {
	q := otherQueue
	if a.FirstLane {
		q = firstLaneQueue
	}
	s.due[q] = append(s.due[q], a)
}

// advance moves the attempts whose time has come into the queues.
func (s *sendSchedule) advance(now time.Time) {
	for len(s.later) > 0 && !s.later[0].leave.After(now) {
		s.enqueue(heap.Pop(&s.later).(*openAttempt))
	}
}

// next is the attempt to send next; nil when none is due.
func (s *sendSchedule) next() *openAttempt {
	for q := range s.due {
		if len(s.due[q]) > 0 {
			return s.due[q][0]
		}
	}
	return nil
}

// pop removes the attempt that next returns.
func (s *sendSchedule) pop() {
	for q := range s.due {
		if len(s.due[q]) > 0 {
			s.due[q][0] = nil
			s.due[q] = s.due[q][1:]
			return
		}
	}
}

// drop removes the due attempts that meet a condition.
func (s *sendSchedule) drop(meets func(*openAttempt) bool) {
	for q := range s.due {
		s.due[q] = slices.DeleteFunc(s.due[q], meets)
	}
}

// all removes and returns every attempt.
func (s *sendSchedule) all() []*openAttempt {
	out := slices.Concat(s.due[firstLaneQueue], s.due[otherQueue], s.later)
	*s = sendSchedule{}
	return out
}

// waiting is how many are due.
func (s *sendSchedule) waiting() int { return len(s.due[firstLaneQueue]) + len(s.due[otherQueue]) }

// soonest is when the next attempt becomes due; false when there is none.
func (s *sendSchedule) soonest() (time.Time, bool) {
	if len(s.later) == 0 {
		return time.Time{}, false
	}
	return s.later[0].leave, true
}

// byRelease is a heap of attempts.
type byRelease []*openAttempt

var _ heap.Interface = (*byRelease)(nil)

func (r byRelease) Len() int           { return len(r) }
func (r byRelease) Less(i, j int) bool { return r[i].leave.Before(r[j].leave) }
func (r byRelease) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }

// Push adds an attempt.
func (r *byRelease) Push(f any) { *r = append(*r, f.(*openAttempt)) }

// Pop takes the last one.
func (r *byRelease) Pop() any {
	n := len(*r) - 1
	a := (*r)[n]
	(*r)[n] = nil
	*r = (*r)[:n]
	return a
}

// spareTime: an attempt leaves at least this long before its latest time, even if that makes a
// burst.
const spareTime = 10 * time.Millisecond

// spread delays the attempts of one claim whose release times passed while it was written. On each
// channel they leave at twice their pace until they have caught up, and not in one burst.
func spread(attempts []*openAttempt, now time.Time) {
	began := make(map[string]time.Time, 8) // the first release time on each channel
	for _, a := range attempts {
		if at, known := began[a.Channel]; !a.leave.IsZero() && (!known || a.leave.Before(at)) {
			began[a.Channel] = a.leave
		}
	}
	for _, a := range attempts {
		from := began[a.Channel]
		if a.leave.IsZero() || !from.Before(now) {
			continue
		}
		at := now.Add(a.leave.Sub(from) / 2)
		if last := a.latest.Add(-spareTime); !a.latest.IsZero() && at.After(last) {
			at = last
		}
		if at.After(a.leave) {
			a.leave = at
		}
	}
}
