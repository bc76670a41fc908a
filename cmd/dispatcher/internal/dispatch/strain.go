package dispatch

import (
	"sync"
	"time"
)

// How a channel is left alone whose messages come too late again and again.
const (
	lateSpan   = 250 * time.Millisecond // what comes late within it counts once: it is of one claim
	lateMemory = 10 * time.Second       // after which it begins anew
	firstLull  = 100 * time.Millisecond // after the second time; it doubles with each further one
	longLull   = 5 * time.Second
)

// strain tells whether what is claimed for a channel comes too late again and again, because this process or
// the database is slow. To claim it anew at once would only burn slots, so the channel is busy for a while,
// which grows as long as that goes on. Once is no strain: the message gets another place.
type strain struct {
	mu      sync.Mutex
	times   int       // guarded by mu; in a row
	counted time.Time // guarded by mu; when the last one was
	until   time.Time // guarded by mu; end of the lull
}

// late notes that a message came too late.
func (s *strain) late(now time.Time) {
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
		s.until = now.Add(min(firstLull<<min(s.times-2, 10), longLull))
	}
}

// left notes that a message left in time.
func (s *strain) left(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times > 0 && !now.Before(s.until) && now.Sub(s.counted) >= lateSpan {
		s.times = 0
	}
}

// lull reports whether the channel is left alone now.
func (s *strain) lull(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.until)
}
