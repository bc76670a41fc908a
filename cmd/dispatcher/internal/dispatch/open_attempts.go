package dispatch

import (
	"sync"
	"time"
)

// inflight counts the attempts of this process that are claimed and not settled.
type openAttempts struct {
	mu     sync.Mutex
	claims []*claimed // guarded by mu, ascending by at
	open   int        // guarded by mu
	idle   chan struct{}
}

// claimed counts what is still open of one claim.
type claimed struct {
	at   time.Time // the database's clock in the claim
	open int
}

func newOpenAttempts() *openAttempts { return &openAttempts{idle: make(chan struct{}, 1)} }

// add registers the attempts of one claim.
func (i *openAttempts) add(at time.Time, flights []*openAttempt) {
	if len(flights) == 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	c := &claimed{at: at, open: len(flights)}
	i.claims = append(i.claims, c)
	i.open += len(flights)
	for _, f := range flights {
		f.claim = c
	}
}

// pin keeps the claim of an attempt open for good: its outcome could not be written, so
// the heart-beat must go on saying that something is open since then.
func (i *openAttempts) pin(f *openAttempt) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f.claim.open++
}

// settled takes attempts out.
func (i *openAttempts) settled(batch []answered) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, a := range batch {
		a.attempt.claim.open--
	}
	i.open -= len(batch)
	keep := i.claims[:0]
	for _, c := range i.claims {
		if c.open > 0 {
			keep = append(keep, c)
		}
	}
	clear(i.claims[len(keep):])
	i.claims = keep
	if i.open == 0 {
		select {
		case i.idle <- struct{}{}:
		default:
		}
	}
}

// count is how many attempts are open.
func (i *openAttempts) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.open
}

// oldest is the database's time of the oldest open claim; zero when nothing is open.
func (i *openAttempts) oldest() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	var oldest time.Time
	for _, c := range i.claims {
		if oldest.IsZero() || c.at.Before(oldest) {
			oldest = c.at
		}
	}
	return oldest
}
