package inbound

import (
	"slices"
	"sync"
	"time"
)

// queue holds the entries to be recorded, in the order of arrival. It is bounded: when it is full,
// messages are refused, and their providers send them again.
type queue struct {
	wake chan struct{} // capacity 1: there is something to record

	mu       sync.Mutex
	entries  []*entry // guarded by mu
	messages int      // guarded by mu: in entries
	closed   bool     // guarded by mu
	// guarded by mu: entries are refused before this time, because the database is away
	away time.Time
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// add queues an entry, or returns why it cannot.
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

// withdraw removes an entry. It returns false when its write has begun or is done.
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

// next removes the entries of the next write.
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

// pause refuses entries until a time: they cannot be recorded, so their callers need not wait.
func (q *queue) pause(until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.away = until
}

// close refuses entries from now on.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}
