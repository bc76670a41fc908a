package breaker

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
)

// mostUnfit is how many messages, without one that is taken in between, a channel may refuse for what they are. Beyond that it
// is the channel that takes nothing, whatever its provider says: the one sender of all its messages is lost, or the one country
// that it is for. It would answer faster than any other and draw messages for it.
const mostUnfit = 100

// unfitRow knows the messages that were refused for what they are since the last answer that speaks for the channel. A
// message that comes again in the next round counts once: what is wrong with it says no more about the channel than before.
// Messages are known by a hash, so that no envelope is kept alive for its id. The zero value is not ready.
type unfitRow struct {
	seed maphash.Seed
	any  atomic.Bool // whether there are some; spares the lock of an accepted message

	mu   sync.Mutex
	seen []uint64 // guarded by mu; hashes of ids, one more than mostUnfit at most
}

func newUnfitRow() *unfitRow {
	return &unfitRow{seed: maphash.MakeSeed(), seen: make([]uint64, 0, mostUnfit+1)}
}

// add takes a message in and reports whether there are more than mostUnfit now.
func (r *unfitRow) add(id string) bool {
	h := maphash.String(r.seed, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.any.Store(true)
	if len(r.seen) <= mostUnfit && !slices.Contains(r.seen, h) {
		r.seen = append(r.seen, h)
	}
	return len(r.seen) > mostUnfit
}

// end begins a new row.
func (r *unfitRow) end() {
	if !r.any.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.any.Store(false)
	r.seen = r.seen[:0]
}
