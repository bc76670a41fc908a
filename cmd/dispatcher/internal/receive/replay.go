package receive

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// replayMemory is how long a callback that was booked is remembered at least: longer than any
	// adapter takes a signed time for. That is five minutes before and after it for most, and an
	// hour after it for the longest.
	replayMemory = 65 * time.Minute
	// maxReplays bounds how many are remembered for one channel, in each of two generations. Beyond
	// it the oldest are forgotten earlier: then only the rules of booking keep a repeated callback
	// from changing anything.
	maxReplays = 250_000
)

// sighting is what is known of a callback that comes in.
type sighting uint8

const (
	seenNever sighting = iota
	seenUnderWay
	seenBooked
)

// replays remembers the callbacks that were booked, by what tells them from all others. It is
// safe for concurrent use.
type replays struct {
	mu       sync.Mutex
	channels map[string]*generations // guarded by mu
}

func newReplays() *replays { return &replays{channels: map[string]*generations{}} }

// mark is a digest of what tells a callback from all others: signatures are long.
type mark [16]byte

func markOf(once string) mark {
	sum := sha256.Sum256([]byte(once))
	return mark(sum[:16])
}

// begin says what is known of a callback; one that was never seen is under way from now on, until
// end. An empty once tells nothing and is never seen.
func (r *replays) begin(channel, once string, now time.Time) sighting {
	if once == "" {
		return seenNever
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.channels[channel]
	if g == nil {
		g = &generations{underWay: map[mark]struct{}{}, began: now}
		r.channels[channel] = g
	}
	return g.begin(markOf(once), now)
}

// end notes whether a callback was booked.
func (r *replays) end(channel, once string, booked bool, now time.Time) {
	if once == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.channels[channel].end(markOf(once), booked, now)
}

// generations are the marks of one channel. The older generation is forgotten as a whole when the
// younger one is old enough or full, so that no mark needs a time of its own.
type generations struct {
	underWay       map[mark]struct{}
	younger, older map[mark]struct{}
	began          time.Time // of the younger
}

func (g *generations) begin(m mark, now time.Time) sighting {
	g.turn(now)
	if has(g.younger, m) || has(g.older, m) {
		return seenBooked
	}
	if has(g.underWay, m) {
		return seenUnderWay
	}
	g.underWay[m] = struct{}{}
	return seenNever
}

func (g *generations) end(m mark, booked bool, now time.Time) {
	delete(g.underWay, m)
	if !booked {
		return
	}
	g.turn(now)
	if g.younger == nil {
		g.younger = map[mark]struct{}{}
	}
	g.younger[m] = struct{}{}
}

// turn begins a new generation when it is time.
func (g *generations) turn(now time.Time) {
	age := now.Sub(g.began)
	switch {
	case age >= 2*replayMemory:
		g.older, g.younger, g.began = nil, nil, now
	case age >= replayMemory, len(g.younger) >= maxReplays:
		g.older, g.younger, g.began = g.younger, nil, now
	}
}

func has(set map[mark]struct{}, m mark) bool {
	_, ok := set[m]
	return ok
}
