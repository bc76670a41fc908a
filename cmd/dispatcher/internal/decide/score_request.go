package decide

import (
	"time"

	"dispatcher/selector"
)

// ScoreRequest gathers the questions that a batch has for scoring functions, each distinct one
// once. It asks nobody itself.
type ScoreRequest struct {
	Routing *Routing
	Now     time.Time
	Open    []*OpenQuestion
	byKey   map[string]*OpenQuestion
}

// OpenQuestion is one distinct question and, once it has been asked, its answer.
type OpenQuestion struct {
	Function *Function
	Question ScoreQuestion
	Answer   Scores
}

// Add notes the question about a task whose route asks, and returns where its answer will be.
func (q *ScoreRequest) Add(t *Task) *OpenQuestion {
	question := newQuestion(q.Routing, t, q.Now)
	key := question.messageKey()
	if known := q.byKey[key]; known != nil {
		return known
	}
	if q.byKey == nil {
		q.byKey = map[string]*OpenQuestion{}
	}
	one := &OpenQuestion{Function: t.Route.Scoring.Function, Question: question}
	q.Open = append(q.Open, one)
	q.byKey[key] = one
	return one
}

// newQuestion is what a function is told about a task at a moment of the database's clock.
func newQuestion(r *Routing, t *Task, now time.Time) ScoreQuestion {
	age := time.Duration(0) // of a message that is not stored yet
	if !t.Row.ReceivedAt.IsZero() {
		age = now.Sub(t.Row.ReceivedAt)
	}
	question := ScoreQuestion{
		Route: t.Route.Name, Lane: t.Row.Lane, Labels: t.msg.Labels, Selectors: selector.Unexpired(t.msg.Selectors, age),
		Candidates: make([]ScoreCandidate, len(t.Route.Members)),
	}
	for place, c := range t.Route.Members {
		ch := &r.Channels[c]
		question.Candidates[place] = ScoreCandidate{Channel: ch.Name, Labels: ch.Labels, Price: ch.Price.units(&t.to, now), Currency: ch.Price.comparedIn()}
	}
	return question
}

// JobKey names a job: its id may be used for another message, too.
type JobKey struct {
	id     string
	digest int64
}

// JobKey is that of a task of a job.
func (t *Task) JobKey() JobKey { return JobKey{t.Row.ID, t.Row.Digest} }
