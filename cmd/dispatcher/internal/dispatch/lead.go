package dispatch

import (
	"sync"
	"time"

	"dispatcher/admission"
)

// How a lead is used and forgotten.
const (
	// leastLead is what places leave free at the end of a second: an attempt that leaves so much
	// later still falls into its window, and need not wait for its place on an idle channel.
	leastLead = 50 * time.Millisecond
	// leadFade is the part of the lead, one in so many, that it loses with each quicker claim.
	leadFade = 8
	// leadMemory is how long a slow claim counts when others do not tell more.
	leadMemory = 10 * time.Second
)

// lead is how long the write half of a claim takes, from the decision until it is durable, by the slower ones of
// late. Places begin that much later: an attempt cannot leave before it is durable, and one that came
// late would use the place of the next.
type lead struct {
	mu    sync.Mutex
	slow  time.Duration // guarded by mu
	noted time.Time     // guarded by mu: when slow was
}

// took notes the write half of a claim that ended now.
func (l *lead) took(d time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow, l.noted = max(min(d, admission.LongestLead), l.at(now)*(leadFade-1)/leadFade), now
}

// get is the lead of a claim that begins now.
func (l *lead) get(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slow := l.at(now); slow >= leastLead {
		return slow
	}
	return 0
}

// at requires mu. After a pause nobody knows how quick the database is by now.
func (l *lead) at(now time.Time) time.Duration {
	if now.Sub(l.noted) > leadMemory {
		return 0
	}
	return l.slow
}
