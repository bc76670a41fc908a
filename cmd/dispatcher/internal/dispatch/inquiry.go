package dispatch

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"

	"dispatcher/selector"
)

// inquiry gathers the questions that a batch has for scoring functions, each distinct one
// once. It asks nobody itself.
type inquiry struct {
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
func (q *inquiry) add(t *task) *openQuestion {
	question := newQuestion(q.routing, t, q.now)
	key := question.key()
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
		question.Candidates[place] = ScoreCandidate{Channel: ch.Name, Labels: ch.Labels, Price: ch.Price.units(t.msg.To)}
	}
	return question
}

// key is equal for questions that are equal under one routing: labels of channels and
// parameters of functions do not differ there.
func (q *ScoreQuestion) key() string {
	b := keyText(keyText(nil, q.Route), q.Lane)
	for _, name := range slices.Sorted(maps.Keys(q.Labels)) {
		b = keyValue(keyText(append(b, 'l'), name), q.Labels[name])
	}
	for i := range q.Selectors {
		s := &q.Selectors[i]
		b = keyValue(keyText(keyText(append(b, 's'), s.Key), string(s.Operator)), s.Value)
	}
	for i := range q.Candidates {
		b = binary.BigEndian.AppendUint64(append(b, 'p'), math.Float64bits(q.Candidates[i].Price))
	}
	return string(b)
}

func keyText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func keyValue(b []byte, v selector.Value) []byte {
	if v.IsNumber {
		return binary.BigEndian.AppendUint64(append(b, 'n'), math.Float64bits(v.Number))
	}
	return keyText(append(b, 't'), v.Text)
}
