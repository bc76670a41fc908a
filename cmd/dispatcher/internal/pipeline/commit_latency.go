package pipeline

import (
	"slices"
	"sync"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
)

// Bounds of the commit latency, and how long it is remembered.
const (
	// leastLatency is as long as the part at the end of each second that has no release times. An
	// attempt that leaves late by up to leastLatency is still in its window, so shorter latencies
	// count as 0.
	leastLatency = 50 * time.Millisecond
	// leastSliding is the same under a sliding limit of a second: there an attempt may leave late by
	// 30 ms, and half of that is kept for its way to a sender.
	leastSliding = 15 * time.Millisecond
	// claimMemory is how long a claim counts. If none is that recent, the newest one counts for
	// slowMemory times its own duration. With a slow database claims are rare, and attempts of a claim
	// that assumed no latency would be late.
	claimMemory = 10 * time.Second
	slowMemory  = 20
)

// commitLatency is how long the write half of a claim takes: from the moment at which the database
// read its clock until this process knows that the attempts are durable. It is the slowest of the
// last eight claims, without outliers. Release times begin that much later, because an attempt
// cannot leave before it is durable, and one that misses its release time wastes a slot.
//
// An outlier took more than twice as long as the third slowest. When the database is slow for a
// moment, for example when it starts a new WAL file, the one or two claims that it delayed do not
// count. Otherwise release times would lie too far ahead for seconds.
type commitLatency struct {
	writes [8]write // the last ones, in a ring
	next   int
}

// write is how long the write half of a claim took, and when it ended; zero when empty.
type write struct {
	took time.Duration
	at   time.Time
}

// took adds the write half of a claim that ended now.
func (l *commitLatency) took(d time.Duration, now time.Time) {
	// The database's clock is known only to within a few milliseconds, so a short time may seem
	// negative.
	l.writes[l.next] = write{took: min(max(d, 0), admission.MaxCommitLatency), at: now}
	l.next = (l.next + 1) % len(l.writes)
}

// get is the commit latency for a claim that begins now. It is 0 below least, and when no claim is
// recent enough.
func (l *commitLatency) get(now time.Time, least time.Duration) time.Duration {
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
	if slow := slowest(known); slow >= least {
		return slow
	}
	return 0
}

// slowest is the longest time that is not an outlier; 0 without times. With fewer than three times
// none counts as an outlier. It sorts times.
func slowest(times []time.Duration) time.Duration {
	const outliers = 2 // at most this many
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

// commitLatencies has one for each lane, because a batch of a campaign takes longer to write than a
// single OTP. Claims of due rows alone have their own, under the empty name.
type commitLatencies struct {
	mu sync.Mutex
	of map[string]*commitLatency // guarded by mu; nil before the first claim
}

// took adds the write half of a claim for a lane that ended now.
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

// get is the commit latency for a claim of a lane that begins now; 0 when it is below least.
func (l *commitLatencies) get(lane string, now time.Time, least time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.of[lane]; known != nil {
		return known.get(now, least)
	}
	return 0
}

// leastLatencyOf is the commit latency from which on release times of a routing take it into
// account.
func leastLatencyOf(r *decide.Routing) time.Duration {
	if r.SlidesBySecond() {
		return leastSliding
	}
	return leastLatency
}
