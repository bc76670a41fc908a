package scoring

import (
	"sync"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// pending is a question that is being asked. Callers with an equal question wait for its answer.
// The caller that asks writes the fields before done is closed.
type pending struct {
	done   chan struct{}
	scores decide.Scores
	// abandoned says that the caller that asked gave up; one of the others must ask then.
	abandoned bool
}

// questions are those that are being asked. golang.org/x/sync/singleflight does not fit: each
// caller has a deadline of its own, so each question would take one more goroutine (DoChan), and
// would fail for all when the caller that asks gives up.
type questions struct {
	mu    sync.Mutex
	byKey map[key]*pending // guarded by mu
}

func newQuestions() *questions { return &questions{byKey: map[key]*pending{}} }

// begin returns the pending question with a key, and whether the caller must ask it.
func (q *questions) begin(k key) (_ *pending, mustAsk bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.byKey[k]; p != nil {
		return p, false
	}
	p := &pending{done: make(chan struct{})}
	q.byKey[k] = p
	return p, true
}

// end wakes all callers that wait for the answer.
func (q *questions) end(k key, p *pending) {
	q.mu.Lock()
	delete(q.byKey, k)
	q.mu.Unlock()
	close(p.done)
}
