package pipeline

import (
	"sync"
	"time"
)

// Times of a lateBackoff.
const (
	lateSpan     = 250 * time.Millisecond // misses within it count once: they are of one claim
	lateMemory   = 10 * time.Second       // after which it starts anew
	firstBackoff = 100 * time.Millisecond // after the second miss; it doubles with each further one
	maxBackoff   = 5 * time.Second
)

// lateBackoff keeps a channel from being chosen while its messages keep missing their release
// time, which happens when this process or the database is overloaded: each missed release wastes a
// slot of the limit. It begins with the second miss in a row and doubles with each further one, up
// to maxBackoff; a message that is sent in time resets it.
type lateBackoff struct {
	mu      sync.Mutex
	times   int       // guarded by mu; misses in a row
	counted time.Time // guarded by mu; time of the last one
	until   time.Time // guarded by mu; end of the backoff
}

// missed counts a message that missed its release time.
func (s *lateBackoff) missed(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch age := now.Sub(s.counted); {
	case now.Before(s.until), s.times > 0 && age < lateSpan:
		return
	case age > lateMemory:
		s.times = 0
	}
	s.times, s.counted = s.times+1, now
	if s.times > 1 {
		s.until = now.Add(min(firstBackoff<<min(s.times-2, 10), maxBackoff))
	}
}

// sent resets the backoff: a message left in time.
func (s *lateBackoff) sent(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times > 0 && !now.Before(s.until) && now.Sub(s.counted) >= lateSpan {
		s.times = 0
	}
}

// active reports whether the channel is not to be chosen now.
func (s *lateBackoff) active(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.until)
}
