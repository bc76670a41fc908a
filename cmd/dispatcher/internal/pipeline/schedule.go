package pipeline

import (
	"container/heap"
	"maps"
	"slices"
	"sync"
	"time"
)

// Bounds of a schedule.
const (
	// grain is what times are rounded up to: rows that come due within it are claimed together.
	// Windows begin at whole grains.
	grain = 5 * time.Millisecond
	// maxScheduled bounds how many times are remembered. What is forgotten is found at the next
	// interval.
	maxScheduled = 4096
	// farthest is how far ahead a time may lie to be remembered.
	farthest = 26 * time.Hour
)

// schedule remembers when rows come due that this process has put off, by the database's clock, so
// that the due loop looks right then: slots at the beginning of a window wait for nobody.
type schedule struct {
	mu    sync.Mutex
	heap  times              // guarded by mu
	known map[int64]struct{} // guarded by mu: what is in heap
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

// soonest forgets what has passed and is the first time to come; false when there is none.
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

// wakeSet gathers the names of limits and channels at which something has come free, until the due
// loop wakes the messages that wait for them. A message that is not woken tries again at its
// NextAt.
type wakeSet struct {
	mu    sync.Mutex
	names map[string]int // guarded by mu; how many messages it may be enough for, by Decision.WaitsFor
}

// add notes that something has come free for so many messages.
func (s *wakeSet) add(on string, messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[string]int{}
	}
	s.names[on] += messages
}

// take empties it: the names ascending, and for how many messages the one with most has room.
func (s *wakeSet) take() (on []string, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.names {
		most = max(most, n)
	}
	on = slices.Sorted(maps.Keys(s.names))
	s.names = nil
	return on, most
}
