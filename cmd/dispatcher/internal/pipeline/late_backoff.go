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
func (b *lateBackoff) missed(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch age := now.Sub(b.counted); {
	case now.Before(b.until), b.times > 0 && age < lateSpan:
		return
	case age > lateMemory:
		b.times = 0
	}
	b.times, b.counted = b.times+1, now
	if b.times > 1 {
		b.until = now.Add(min(firstBackoff<<min(b.times-2, 10), maxBackoff))
	}
}

// sent resets the backoff: a message left in time.
func (b *lateBackoff) sent(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.times > 0 && !now.Before(b.until) && now.Sub(b.counted) >= lateSpan {
		b.times = 0
	}
}

// active reports whether the channel is not to be chosen now.
func (b *lateBackoff) active(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.until)
}
