package pipeline

import (
	"maps"
	"slices"
	"sync"
)

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
