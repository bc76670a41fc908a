package pipeline

import (
	"slices"
	"sync"
	"time"

	"dispatcher/admission"
)

// How a commit latency is used and forgotten.
const (
	// leastLatency is as long as the end of a second that has no release times. An attempt that
	// leaves that much later is still in its window, and on an idle channel it need not wait.
	leastLatency = 50 * time.Millisecond
	// claimMemory is how long a claim counts. When none is as new as that, the newest one counts
	// for slowMemory times as long as it took: with a slow database claims are rare, and one that
	// does not know how slow it is comes late.
	claimMemory = 10 * time.Second
	slowMemory  = 20
)

// commitLatency is how long the write half of a claim takes, from the moment that the database
// showed its clock until the attempts are durable and this process knows it: the slowest of the
// last eight that is no outlier. Release times begin that much later, because an attempt cannot
// leave before it is durable, and one that came late would use the release time of the next.
//
// An outlier took more than twice as long as the third slowest. When the database is slow for a
// moment, as when it begins a new file of its log, the one or two claims that it held up do not
// count. If they did, release times would lie too far ahead for seconds after that moment.
type commitLatency struct {
	writes [8]write // the last ones, in a ring
	next   int
}

// write is how long the write half of a claim took, and when it ended; zero for none.
type write struct {
	took time.Duration
	at   time.Time
}

// took notes the write half of a claim that ended now.
func (l *commitLatency) took(d time.Duration, now time.Time) {
	// By the database's clock, which is known to within a few milliseconds, a quick one may have
	// taken less than no time.
	l.writes[l.next] = write{took: min(max(d, 0), admission.MaxCommitLatency), at: now}
	l.next = (l.next + 1) % len(l.writes)
}

// get is the commit latency for a claim that begins now. After a pause nobody knows how quick the
// database is by now.
func (l *commitLatency) get(now time.Time) time.Duration {
	var room [len(l.writes)]time.Duration
	known := room[:0]
	for _, w := range l.writes {
		if now.Sub(w.at) <= claimMemory {
			known = append(known, w.took)
		}
	}
	if newest := l.writes[(l.next+len(l.writes)-1)%len(l.writes)]; len(known) == 0 &&
		now.Sub(newest.at) <= slowMemory*newest.took {
		known = append(known, newest.took)
	}
	if slow := slowest(known); slow >= leastLatency {
		return slow
	}
	return 0
}

// slowest is the longest time that is no outlier, 0 of none. Which of fewer than three is one
// cannot be told. The times are put in order.
func slowest(times []time.Duration) time.Duration {
	const outliers = 2 // at most
	slices.Sort(times)
	switch n := len(times); {
	case n == 0:
		return 0
	case n <= outliers:
		return times[n-1]
	default:
		above, _ := slices.BinarySearch(times, 2*times[n-1-outliers]+1)
		return times[above-1]
	}
}

// commitLatencies has one for each lane: a batch of a campaign takes longer to write than a code.
// Claims of waiting messages alone have their own, under the empty name.
type commitLatencies struct {
	mu sync.Mutex
	of map[string]*commitLatency // guarded by mu; nil before the first claim
}

// took notes the write half of a claim for a lane that ended now.
func (l *commitLatencies) took(lane string, d time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]*commitLatency{}
	}
	if l.of[lane] == nil {
		l.of[lane] = &commitLatency{}
	}
	l.of[lane].took(d, now)
}

// get is the commit latency for a claim of a lane that begins now.
func (l *commitLatencies) get(lane string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.of[lane]; known != nil {
		return known.get(now)
	}
	return 0
}
