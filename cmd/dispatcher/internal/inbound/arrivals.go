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
	// keepArrival is how long the first arrival of a message that was not booked is remembered:
	// providers give up within that time.
	keepArrival = 72 * time.Hour
	// maxArrivals bounds how many are remembered. Beyond it further ones count from when they are
	// booked.
	maxArrivals = 10_000
)

// arrivals remembers when messages first arrived that could not be booked. Their providers send
// them again, and a START that comes again must not look younger than a STOP that arrived in
// between. Only such messages are remembered: a STOP counts whenever it comes. It is safe for
// concurrent use.
type arrivals struct {
	mu    sync.Mutex
	first map[arrival]time.Time // guarded by mu
}

// arrival is by what a message is known again.
type arrival [16]byte

// arrivalOf is a hash of the provider's reference, or of the content where it gives none: of a
// START that was not taken, the next one of the same sender is most likely the repetition.
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

// date gives a message that comes again the time of its first arrival.
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

// refused remembers a message that was not booked.
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

// booked forgets a message: what is booked is known again by the ledger.
func (a *arrivals) booked(in *ledger.Inbound) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.first) > 0 {
		delete(a.first, arrivalOf(in))
	}
}
