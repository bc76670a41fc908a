package inbound

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"sync"
	"time"

	"dispatcher/ledger"
)

const (
	// keepArrival is how long a first arrival is remembered. Providers stop sending a message again
	// within that time.
	keepArrival = 72 * time.Hour
	// maxArrivals bounds how many are remembered. When there are as many, a message counts from the
	// arrival that is recorded.
	maxArrivals = 10_000
)

// arrivals remembers the first arrival of each START that could not be recorded. Its provider sends
// it again, and then it must not look younger than a STOP that arrived in between. Other messages
// are not remembered: a STOP may count from any time. It is safe for concurrent use.
type arrivals struct {
	mu    sync.Mutex
	first map[arrival]time.Time // guarded by mu
}

// arrival identifies a message that is sent again.
type arrival [16]byte

// arrivalOf is a hash of the provider's reference or, if there is none, of the content: the next
// START of the same sender is most likely the same message again.
func arrivalOf(in *ledger.Inbound) arrival {
	fields := []string{in.Channel, in.Reference}
	if in.Reference == "" {
		fields = append(fields, in.From, in.To, in.Text)
	}
	var text []byte
	for _, f := range fields {
		text = append(binary.AppendUvarint(text, uint64(len(f))), f...)
	}
	sum := sha256.Sum256(text)
	return arrival(sum[:16])
}

// date sets the time of a message that is sent again to that of its first arrival.
func (a *arrivals) date(in *ledger.Inbound) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.first) == 0 {
		return
	}
	if first, ok := a.first[arrivalOf(in)]; ok && first.Before(in.At) &&
		in.At.Sub(first) <= keepArrival {
		in.At = first
	}
}

// refused remembers the arrival of a message that was not recorded.
func (a *arrivals) refused(in *ledger.Inbound) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.first) >= maxArrivals {
		maps.DeleteFunc(a.first, func(_ arrival, at time.Time) bool {
			return in.At.Sub(at) > keepArrival
		})
	}
	if len(a.first) >= maxArrivals {
		return
	}
	if a.first == nil {
		a.first = map[arrival]time.Time{}
	}
	a.first[arrivalOf(in)] = in.At
}

// recorded forgets a message. Once it is recorded, the ledger recognises it.
func (a *arrivals) recorded(in *ledger.Inbound) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.first) > 0 {
		delete(a.first, arrivalOf(in))
	}
}
