package inbound

import (
	"slices"
	"sync"
	"time"
)

// queue holds what waits to be booked, in the order in which it came. It is bounded: what finds no
// room stays with its provider.
type queue struct {
	wake chan struct{} // capacity 1: there is something to book

	mu       sync.Mutex
	entries  []*entry // guarded by mu
	messages int      // guarded by mu: in entries
	closed   bool     // guarded by mu
	// guarded by mu: nothing is taken before this time, because the database is away
	away time.Time
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// add takes an entry, or says why not.
func (q *queue) add(e *entry, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return errClosed
	case now.Before(q.away):
		return errAway
	case q.messages+len(e.in) > maxWaiting:
		return errFull
	}
	q.entries, q.messages = append(q.entries, e), q.messages+len(e.in)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

// withdraw takes an entry out again; false means that it is being booked, or is.
func (q *queue) withdraw(e *entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.entries, e)
	if at < 0 {
		return false
	}
	q.entries, q.messages = slices.Delete(q.entries, at, at+1), q.messages-len(e.in)
	return true
}

// next takes entries out for one booking.
func (q *queue) next() (batch []*entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for len(q.entries) > 0 && n+len(q.entries[0].in) <= maxBatch {
		e := q.entries[0]
		batch, q.entries = append(batch, e), q.entries[1:]
		n += len(e.in)
	}
	q.messages -= n
	return batch
}

// pause refuses everything until a time: nothing can be booked, and whoever waited for that would
// wait in vain.
func (q *queue) pause(until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.away = until
}

// close refuses everything from now on.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}
