package sandbox

import (
	"sync"
	"time"
)

// rate counts submits in seconds of the wall clock, as a provider does.
type rate struct {
	max int // 0 sets no limit

	mu     sync.Mutex
	second int64 // guarded by mu
	taken  int   // in that second; guarded by mu
}

// over takes one submit and reports whether it is one too many.
func (r *rate) over(now time.Time) bool {
	if r.max == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if second := now.Unix(); second != r.second {
		r.second, r.taken = second, 0
	}
	r.taken++
	return r.taken > r.max
}
