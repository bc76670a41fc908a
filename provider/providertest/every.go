package providertest

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// IsNth is true for every n-th call; never for 0.
func IsNth(n uint64, every int) bool { return every > 0 && n%uint64(every) == 0 }

// Within is true for that part of the calls, evenly; a ratio of zero is all.
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

// Exceeds reports whether a call at now is beyond most calls in its second; never for 0.
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
