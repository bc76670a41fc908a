package scoring

import (
	"sync"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// flight is one asking that several callers wait for. Its leader writes the fields before done is
// closed.
type flight struct {
	done   chan struct{}
	scores decide.Scores
	// abandoned says that the leader gave up; one of the others must lead then.
	abandoned bool
}

// flights are the questions being asked. golang.org/x/sync/singleflight does not fit: each caller
// has a deadline of its own, so each question would take one more goroutine (DoChan), and would
// fail for all when its leader gives up.
type flights struct {
	mu    sync.Mutex
	byKey map[key]*flight // guarded by mu
}

func newFlights() *flights { return &flights{byKey: map[key]*flight{}} }

// join returns the flight of a question, and whether the caller must lead it.
func (f *flights) join(k key) (_ *flight, leads bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if under := f.byKey[k]; under != nil {
		return under, false
	}
	started := &flight{done: make(chan struct{})}
	f.byKey[k] = started
	return started, true
}

// land wakes all callers that wait for the flight.
func (f *flights) land(k key, landed *flight) {
	f.mu.Lock()
	delete(f.byKey, k)
	f.mu.Unlock()
	close(landed.done)
}
