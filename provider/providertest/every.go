package providertest

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// IsNth reports whether call n is a multiple of every; never if every is 0.
func IsNth(n uint64, every int) bool { return every > 0 && n%uint64(every) == 0 }

// Within counts a call and is true for that ratio of the calls, evenly spread. A ratio of 0 means
// all.
func Within(calls *atomic.Uint64, ratio float64) bool {
	n := float64(calls.Add(1))
	return ratio <= 0 || math.Floor(n*ratio) > math.Floor((n-1)*ratio)
}

// Rate counts calls in each second of the wall clock.
type Rate struct {
	mu     sync.Mutex
	second int64 // guarded by mu
	taken  int   // in that second; guarded by mu
}

// Exceeds counts a call at now and reports whether its second now has more calls than the bound
// most; never if most is 0.
func (r *Rate) Exceeds(most int, now time.Time) bool {
	if most <= 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if second := now.Unix(); second != r.second {
		r.second, r.taken = second, 0
	}
	r.taken++
	return r.taken > most
}
