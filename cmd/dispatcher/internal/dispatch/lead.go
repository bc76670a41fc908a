package dispatch

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"dispatcher/admission"
)

// How a lead is used and forgotten.
const (
	// leastLead is what places leave free at the end of a second: an attempt that leaves so much
	// later still falls into its window, and need not wait for its place on an idle channel.
	leastLead = 50 * time.Millisecond
	// leadMemory is how long a claim counts when others do not tell more.
	leadMemory = 10 * time.Second
)

// lead is how long the write half of a claim takes, from the decision until it is durable: the shortest of the slowest
// third of the last eight. Places begin that much later: an attempt cannot leave before it is durable, and one that came
// late would use the place of the next.
//
// Of a database that is slow for a moment, as when it begins a new file of its log, the one or two claims that it held up do
// not count. If they did, the slots of what waits for its place would be missing for seconds after a moment that is over.
type lead struct {
	mu     sync.Mutex
	writes [8]write // guarded by mu; the last ones, in a ring
	next   int      // guarded by mu
}

// write is how long the write half of a claim took, and when it ended; zero for none.
type write struct {
	took time.Duration
	at   time.Time
}

// took notes the write half of a claim that ended now.
func (l *lead) took(d time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[l.next] = write{took: min(d, admission.LongestLead), at: now}
	l.next = (l.next + 1) % len(l.writes)
}

// get is the lead of a claim that begins now. After a pause nobody knows how quick the database is by now.
func (l *lead) get(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var known []write
	for _, w := range l.writes {
		if !w.at.IsZero() && now.Sub(w.at) <= leadMemory {
			known = append(known, w)
		}
	}
	if len(known) == 0 {
		return 0
	}
	slices.SortFunc(known, func(a, b write) int { return cmp.Compare(b.took, a.took) })
	if slow := known[len(known)/3].took; slow >= leastLead {
		return slow
	}
	return 0
}
