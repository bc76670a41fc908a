package dispatch

import (
	"sync"
	"time"
)

// keptFor is how long the answer about a due row waits for the claim that uses it. It is
// a bound on memory: the next claim follows at once.
const keptFor = 10 * time.Second

// answers keeps what functions said about due rows. Such rows are seen only inside a claim,
// where nobody may be asked: the claim leaves them as they are, the function is asked after it,
// and the next claim of the row finds the answer here. That holds for a function whose answers
// may not be used for other messages as well, so the answers are kept by row.
type answers struct {
	mu   sync.Mutex
	rows map[int64]keptAnswer // guarded by mu; by Message.Seq
}

// keptAnswer is an answer, the question that it belongs to and the routing that it was asked under.
type keptAnswer struct {
	version int64
	key     string
	scores  *Scores
	at      time.Time
}

// put keeps what was answered about rows and drops what nobody came for.
func (a *answers) put(rows map[int64]keptAnswer, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rows == nil {
		a.rows = map[int64]keptAnswer{}
	}
	for seq, kept := range a.rows {
		if now.Sub(kept.at) > keptFor {
			delete(a.rows, seq)
		}
	}
	for seq, kept := range rows {
		kept.at = now
		a.rows[seq] = kept
	}
}

// find is the answer about a row, if it was asked under this routing and the question is
// still the same: in between a selector may have expired.
func (a *answers) find(seq, version int64, question *ScoreQuestion) *Scores {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept, ok := a.rows[seq]
	if !ok || kept.version != version || kept.key != question.key() {
		return nil
	}
	return kept.scores
}

// used drops the answers about rows that have been decided.
func (a *answers) used(r *round) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.rows) == 0 {
		return
	}
	for i := range r.decisions {
		if r.decisions[i].State != "" {
			delete(a.rows, r.tasks[i].row.Seq)
		}
	}
}
