package access

import (
	"sync"
	"time"
)

// Rate bounds the requests of one principal.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Wait counts a request of a principal to the API or the console. If it comes too soon, it is not
// counted, and Wait returns how long the principal has to wait for it.
func (g *Gate) Wait(who *Principal) time.Duration { return g.rates.take(who.Name, time.Now()) }

// Streams that may be open at a time: of all principals together, and of each.
const (
	mostStreams    = 256
	streamsForEach = 32
)

// OpenStream counts a stream that a principal opens, and reports whether it may. CloseStream
// follows when it ends.
func (g *Gate) OpenStream(who *Principal) bool { return g.streams.Take(who.Name, 1) }

// CloseStream ends what OpenStream began.
func (g *Gate) CloseStream(who *Principal) { g.streams.Give(who.Name, 1) }

// rates has a token bucket for each principal. Only callers with a valid token have one, so there
// are few.
type rates struct {
	rate Rate
	mu   sync.Mutex
	by   map[string]*bucket // guarded by mu
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newRates(r Rate) *rates {
	if r.PerSecond <= 0 {
		r.PerSecond = 20
	}
	if r.Burst <= 0 {
		r.Burst = 100
	}
	return &rates{rate: r, by: map[string]*bucket{}}
}

// take counts a request, or says how long the caller has to wait.
func (r *rates) take(name string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.by[name]
	if b == nil {
		b = &bucket{tokens: float64(r.rate.Burst), at: now}
		r.by[name] = b
	}
	b.tokens = min(b.tokens+now.Sub(b.at).Seconds()*r.rate.PerSecond, float64(r.rate.Burst))
	b.at = now
	if b.tokens < 1 {
		return time.Duration((1 - b.tokens) / r.rate.PerSecond * float64(time.Second))
	}
	b.tokens--
	return 0
}

// Shares bounds what requests hold at a time: all of them together, and those of each principal.
type Shares struct {
	all, each int64

	mu   sync.Mutex
	held int64            // guarded by mu
	by   map[string]int64 // guarded by mu: what each principal holds; none that holds nothing
}

// NewShares bounds what all principals hold, and what each of them does.
func NewShares(all, each int64) *Shares {
	return &Shares{all: all, each: each, by: map[string]int64{}}
}

// Take takes n for a principal, or reports false and takes nothing if that would be more than its
// share or than all may hold.
func (s *Shares) Take(name string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.all-s.held || n > s.each-s.by[name] {
		return false
	}
	s.held += n
	s.by[name] += n
	return true
}

// Give gives back what Take took, at once or in parts.
func (s *Shares) Give(name string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= n
	if s.by[name] -= n; s.by[name] == 0 {
		delete(s.by, name)
	}
}
