package pipeline

import (
	"maps"
	"slices"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// keptFor is how long the answer about a due row is kept for the claim that uses it. It only bounds
// memory: the next claim usually follows at once.
const keptFor = 10 * time.Second

// scoreAnswers keeps the answers of scoring functions about due rows. A claim sees these rows only
// inside its transaction, where no function may be called. So the claim leaves them unchanged, the
// function is called after it, and the next claim of the row finds the answer here. Answers are
// kept by row, because the answers of some functions must not be used for other messages. Until the
// answer is there, claims leave the row out.
//
// It also keeps the answers about jobs for which a claim had no slots or no room, so that the next
// claim does not ask again.
type scoreAnswers struct {
	mu     sync.Mutex
	rows   map[int64]keptAnswer         // guarded by mu; by Message.Seq
	jobs   map[decide.JobKey]keptAnswer // guarded by mu
	asking map[int64]struct{}           // guarded by mu; rows being asked about, by Message.Seq
}

// keptAnswer is an answer and when it was given.
type keptAnswer struct {
	decide.RowScores
	at time.Time
}

// begin records that a function is being asked about rows.
func (a *scoreAnswers) begin(rows []int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asking == nil {
		a.asking = make(map[int64]struct{}, len(rows))
	}
	for _, seq := range rows {
		a.asking[seq] = struct{}{}
	}
}

// end removes the rows from those being asked about.
func (a *scoreAnswers) end(rows []int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seq := range rows {
		delete(a.asking, seq)
	}
}

// open lists the rows that are being asked about, which claims should leave out.
func (a *scoreAnswers) open() []int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.asking) == 0 {
		return nil
	}
	return slices.Collect(maps.Keys(a.asking))
}

// put keeps the answers about rows and drops those that were not used in time.
func (a *scoreAnswers) put(rows map[int64]keptAnswer, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rows == nil {
		a.rows = map[int64]keptAnswer{}
	}
	keep(a.rows, rows, now)
}

// putJobs is put for jobs.
func (a *scoreAnswers) putJobs(jobs map[decide.JobKey]keptAnswer, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.jobs == nil {
		a.jobs = map[decide.JobKey]keptAnswer{}
	}
	keep(a.jobs, jobs, now)
}

// keep adds answers to those that are kept, and drops what is too old.
func keep[K comparable](kept, more map[K]keptAnswer, now time.Time) {
	maps.DeleteFunc(kept, func(_ K, answer keptAnswer) bool { return now.Sub(answer.at) > keptFor })
	for key, answer := range more {
		answer.at = now
		kept[key] = answer
	}
}

// known are the answers about rows; nil when there are none.
func (a *scoreAnswers) known() map[int64]decide.RowScores {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.rows) == 0 {
		return nil
	}
	known := make(map[int64]decide.RowScores, len(a.rows))
	for seq, answer := range a.rows {
		known[seq] = answer.RowScores
	}
	return known
}

// findJob is the answer about a job if it was given under this version of the routing. No selector
// of a job has expired by then.
func (a *scoreAnswers) findJob(key decide.JobKey, version int64, now time.Time) *decide.Scores {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept, ok := a.jobs[key]
	if !ok || kept.Version != version || now.Sub(kept.at) > keptFor {
		return nil
	}
	return kept.Scores
}

// used drops the answers about rows that have been decided, and about the jobs of the claim.
func (a *scoreAnswers) used(d *decide.Decided) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.rows) == 0 && len(a.jobs) == 0 {
		return
	}
	for i := range d.Decisions {
		switch {
		case d.Intakes[i] != ledger.Due:
			delete(a.jobs, d.Tasks[i].JobKey())
		case d.Decisions[i].State != "":
			delete(a.rows, d.Tasks[i].Row.Seq)
		}
	}
}
