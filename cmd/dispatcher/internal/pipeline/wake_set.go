package pipeline

import (
	"maps"
	"slices"
	"sync"
)

// wakeSet collects the names of limits and channels with new free slots, until the due loop wakes
// the messages that wait for them. A message that is not woken tries again at its NextAt.
type wakeSet struct {
	mu    sync.Mutex
	names map[string]int // guarded by mu; number of messages to wake, by Decision.WaitsFor
}

// add records that slots for a number of messages came free.
func (s *wakeSet) add(on string, messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[string]int{}
	}
	s.names[on] += messages
}

// take empties the set. It returns the names, ascending, and the largest number of messages.
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
