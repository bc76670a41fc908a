package dispatch

import (
	"time"

	"dispatcher/selector"
)

// scoreRequest gathers the questions that a batch has for scoring functions, each distinct one
// once. It asks nobody itself.
type scoreRequest struct {
	routing *Routing
	now     time.Time
	open    []*openQuestion
	byKey   map[string]*openQuestion
}

// openQuestion is one distinct question and, once it has been asked, its answer.
type openQuestion struct {
	function *Function
	question ScoreQuestion
	answer   Scores
}

// add notes the question about a task whose route asks, and returns where its answer will be.
func (q *scoreRequest) add(t *task) *openQuestion {
	question := newQuestion(q.routing, t, q.now)
	key := question.messageKey()
	if known := q.byKey[key]; known != nil {
		return known
	}
	if q.byKey == nil {
		q.byKey = map[string]*openQuestion{}
	}
	one := &openQuestion{function: t.route.Scoring.Function, question: question}
	q.open = append(q.open, one)
	q.byKey[key] = one
	return one
}

// newQuestion is what a function is told about a task at a moment of the database's clock.
func newQuestion(r *Routing, t *task, now time.Time) ScoreQuestion {
	age := time.Duration(0) // of a message that is not stored yet
	if !t.row.ReceivedAt.IsZero() {
		age = now.Sub(t.row.ReceivedAt)
	}
	question := ScoreQuestion{
		Route: t.route.Name, Lane: t.row.Lane, Labels: t.msg.Labels, Selectors: selector.Unexpired(t.msg.Selectors, age),
		Candidates: make([]ScoreCandidate, len(t.route.Members)),
	}
	for place, c := range t.route.Members {
		ch := &r.Channels[c]
		question.Candidates[place] = ScoreCandidate{Channel: ch.Name, Labels: ch.Labels, Price: ch.Price.units(&t.to, now), Currency: ch.Price.comparedIn()}
	}
	return question
}

// jobKey names a job: its id may be used for another message, too.
type jobKey struct {
	id     string
	digest int64
}

// jobKey is that of a task of a job.
func (t *task) jobKey() jobKey { return jobKey{t.row.ID, t.row.Digest} }
