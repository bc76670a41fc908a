package pipeline

import (
	"container/heap"
	"sync"
	"time"
)

// Bounds of a schedule.
const (
	// grain is the multiple to which times are rounded up, so that rows that come due within it are
	// claimed together. Windows begin at whole grains.
	grain = 5 * time.Millisecond
	// maxScheduled bounds how many times are remembered. Rows whose time is not remembered are found
	// at the next interval.
	maxScheduled = 4096
	// farthest is how far ahead a time may lie and still be remembered.
	farthest = 26 * time.Hour
)

// schedule remembers when the rows that this process has put off come due, by the database's clock.
// So the due loop looks exactly then, and slots at the beginning of a window are used at once.
type schedule struct {
	mu    sync.Mutex
	heap  times              // guarded by mu
	known map[int64]struct{} // guarded by mu: the times in heap
	moved chan struct{}      // gets a token when the soonest time has changed
}

func newSchedule() *schedule {
	return &schedule{known: map[int64]struct{}{}, moved: make(chan struct{}, 1)}
}

// add remembers a time.
func (s *schedule) add(at, now time.Time) {
	if !at.After(now) || at.Sub(now) > farthest {
		return
	}
	nanos := at.UnixNano()
	if rest := nanos % int64(grain); rest > 0 {
		nanos += int64(grain) - rest
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.known[nanos]; twice || len(s.heap) >= maxScheduled && nanos >= s.heap[0] {
		return
	}
	s.known[nanos] = struct{}{}
	heap.Push(&s.heap, nanos)
	if s.heap[0] != nanos {
		return
	}
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// soonest drops the times that have passed and returns the first one to come; false without one.
func (s *schedule) soonest(now time.Time) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.heap) > 0 && s.heap[0] <= now.UnixNano() {
		delete(s.known, heap.Pop(&s.heap).(int64))
	}
	if len(s.heap) == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, s.heap[0]).UTC(), true
}

// times is a heap of nanoseconds since 1970.
type times []int64

var _ heap.Interface = (*times)(nil)

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// Push adds a time.
func (t *times) Push(at any) { *t = append(*t, at.(int64)) }

// Pop takes the last one.
func (t *times) Pop() any {
	n := len(*t) - 1
	at := (*t)[n]
	*t = (*t)[:n]
	return at
}
