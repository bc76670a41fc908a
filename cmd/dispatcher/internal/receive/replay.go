package receive

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// replayMemory is how long a recorded callback is remembered at least. Some adapters accept a
	// signed time for longer; the database recognises what comes again after that.
	replayMemory = 65 * time.Minute
	// maxReplays bounds how many callbacks of one channel are remembered, in each of two generations.
	// Beyond it the oldest are forgotten earlier. A replayed callback is then recorded again, which
	// changes nothing.
	maxReplays = 250_000
)

// sighting says whether a callback was seen before.
type sighting uint8

const (
	seenNever sighting = iota
	seenUnderWay
	seenRecorded
)

// replays remembers the callbacks that were recorded, by their replay ids
// (provider.CallbackContent). It is safe for concurrent use.
type replays struct {
	mu       sync.Mutex
	channels map[string]*generations // guarded by mu
}

func newReplays() *replays { return &replays{channels: map[string]*generations{}} }

// mark is a hash of a replay id, because an id may be a long signature.
type mark [16]byte

func markOf(once string) mark {
	sum := sha256.Sum256([]byte(once))
	return mark(sum[:16])
}

// begin says whether a callback was seen before. A callback that was never seen counts as under way
// from now on, until end is called. A callback with an empty id (once) counts as never seen.
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

// end records whether a callback was recorded.
func (r *replays) end(channel, once string, recorded bool, now time.Time) {
	if once == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.channels[channel].end(markOf(once), recorded, now)
}

// generations are the marks of one channel. When the younger generation is old enough or full, the
// older one is dropped as a whole, so no mark needs a time.
type generations struct {
	underWay       map[mark]struct{}
	younger, older map[mark]struct{}
	began          time.Time // of the younger
}

func (g *generations) begin(m mark, now time.Time) sighting {
	g.renew(now)
	if has(g.younger, m) || has(g.older, m) {
		return seenRecorded
	}
	if has(g.underWay, m) {
		return seenUnderWay
	}
	g.underWay[m] = struct{}{}
	return seenNever
}

func (g *generations) end(m mark, recorded bool, now time.Time) {
	delete(g.underWay, m)
	if !recorded {
		return
	}
	g.renew(now)
	if g.younger == nil {
		g.younger = map[mark]struct{}{}
	}
	g.younger[m] = struct{}{}
}

// renew begins a new generation if the younger one is old enough or full.
func (g *generations) renew(now time.Time) {
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
