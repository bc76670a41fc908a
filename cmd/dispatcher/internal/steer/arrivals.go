package steer

import (
	"sync"
	"sync/atomic"

	"dispatcher/config"
)

// Arrivals counts new messages by the first digits of their numbers, for guards per prefix. It is
// safe for concurrent use. It counts nothing while the routing document has no such guard. What a
// process has counted since the last round is lost when it ends: less than a minute.
type Arrivals struct {
	wanted atomic.Bool
	mu     sync.Mutex
	counts arrivals // guarded by mu
}

// arrivals is the number of messages by the longest prefix that a guard can have.
type arrivals map[[config.MaxGuardDigits]byte]int64

// Add counts a message to an E.164 number, with its plus.
func (a *Arrivals) Add(number string) {
	if number == "" || !a.wanted.Load() {
		return
	}
	var prefix [config.MaxGuardDigits]byte
	copy(prefix[:], number[1:])
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = arrivals{}
	}
	a.counts[prefix]++
}

// take returns what was counted since the last call.
func (a *Arrivals) take() arrivals {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.counts
	a.counts = nil
	return taken
}

// by sums the messages for each prefix of that many digits, with its plus.
func (a arrivals) by(digits int) map[string]int64 {
	out := make(map[string]int64, len(a))
	for prefix, n := range a {
		out["+"+string(prefix[:digits])] += n
	}
	return out
}
