package consume

import (
	"sync"
	"time"
)

// tellEvery is how often the same trouble is told to the log.
const tellEvery = 15 * time.Second

// sampler keeps a trouble that lasts from filling the log.
type sampler struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; by kind of trouble, of which there are few
}

func newSampler() *sampler { return &sampler{last: map[string]time.Time{}} }

// due reports whether a trouble of this kind is to be told at now, and remembers that it was.
func (s *sampler) due(kind string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, told := s.last[kind]; told && now.Sub(last) < tellEvery {
		return false
	}
	s.last[kind] = now
	return true
}
