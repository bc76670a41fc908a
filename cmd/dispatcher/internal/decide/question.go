package decide

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"

	"dispatcher/selector"
)

// Values of Scores.Trouble: why a scoring function gave no scores.
const (
	FunctionTimeout     = "function_timeout"     // no answer by its deadline or the batch's
	FunctionStatus      = "function_status"      // it answered with another status than 200
	FunctionInvalid     = "function_invalid"     // its answer cannot be read
	FunctionTooFew      = "function_too_few"     // not one score for each candidate
	FunctionNotFinite   = "function_not_finite"  // a score is NaN or infinite
	FunctionTooLarge    = "function_too_large"   // its answer is longer than is read
	FunctionUnreachable = "function_unreachable" // no connection, or the function was not asked
)

// ScoreQuestion is what a function is told about a message and its candidates, all members of the
// route in configured order. It holds neither number nor text.
type ScoreQuestion struct {
	Route, Lane string
	Labels      map[string]selector.Value
	Selectors   []selector.Selector // not expired
	Candidates  []ScoreCandidate
}

// ScoreCandidate is one channel of a ScoreQuestion.
type ScoreCandidate struct {
	Channel string
	Labels  map[string]selector.Value
	Price   float64 // of one segment to the message's number, in whole units of Currency
	// Currency is the currency of Price; empty for a channel without a price, whose Price is 0.
	Currency string
}

// Scores is the answer to a ScoreQuestion: one finite value per candidate in the same order, or the
// word for what went wrong.
type Scores struct {
	Values  []float64
	Trouble string
}

// Checked replaces an answer that does not fit its question by the trouble that describes it.
func (s Scores) Checked(candidates int) Scores {
	if s.Trouble != "" {
		return Scores{Trouble: s.Trouble}
	}
	if len(s.Values) != candidates {
		return Scores{Trouble: FunctionTooFew}
	}
	for _, value := range s.Values {
		if !finite(value) {
			return Scores{Trouble: FunctionNotFinite}
		}
	}
	return s
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// ScoreRequest collects the distinct questions that a batch has for scoring functions. It does not
// ask them.
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

// Add adds the question about a task whose route asks, and returns where its answer will be.
func (r *ScoreRequest) Add(t *Task) *OpenQuestion {
	question := newQuestion(r.Routing, t, r.Now)
	key := question.messageKey()
	if known := r.byKey[key]; known != nil {
		return known
	}
	if r.byKey == nil {
		r.byKey = map[string]*OpenQuestion{}
	}
	one := &OpenQuestion{Function: t.Route.Scoring.Function, Question: question}
	r.Open = append(r.Open, one)
	r.byKey[key] = one
	return one
}

// newQuestion is the question about a task at a moment of the database's clock.
func newQuestion(r *Routing, t *Task, now time.Time) ScoreQuestion {
	age := time.Duration(0) // of a message that is not stored yet
	if !t.Row.ReceivedAt.IsZero() {
		age = now.Sub(t.Row.ReceivedAt)
	}
	question := ScoreQuestion{
		Route: t.Route.Name, Lane: t.Row.Lane, Labels: t.msg.Labels,
		Selectors:  selector.Unexpired(t.msg.Selectors, age),
		Candidates: make([]ScoreCandidate, len(t.Route.Members)),
	}
	for place, c := range t.Route.Members {
		ch := &r.Channels[c]
		question.Candidates[place] = ScoreCandidate{
			Channel: ch.Name, Labels: ch.Labels, Price: ch.Price.units(&t.to, now),
			Currency: ch.Price.comparedIn(),
		}
	}
	return question
}

// JobKey identifies a job. The id alone does not, because two messages may have the same id.
type JobKey struct {
	id     string
	digest int64
}

// JobKey is the key of the task's job.
func (t *Task) JobKey() JobKey { return JobKey{t.Row.ID, t.Row.Digest} }

// The key of a question is a text in which every part is preceded by its length, so different
// questions have different keys. The order of labels does not matter; that of selectors and
// candidates does.

// AppendKey appends the key of everything that a question tells a function.
func (q *ScoreQuestion) AppendKey(b []byte) []byte {
	b = q.appendMessageKey(b)
	for i := range q.Candidates {
		c := &q.Candidates[i]
		b = keyText(keyLabels(keyText(b, c.Channel), c.Labels), c.Currency)
	}
	return b
}

// messageKey is the part of the key in which questions under one routing can differ. Names, labels
// and currencies of channels cannot.
func (q *ScoreQuestion) messageKey() string { return string(q.appendMessageKey(nil)) }

func (q *ScoreQuestion) appendMessageKey(b []byte) []byte {
	b = keyLabels(keyText(keyText(b, q.Route), q.Lane), q.Labels)
	b = binary.AppendUvarint(b, uint64(len(q.Selectors)))
	for i := range q.Selectors {
		s := &q.Selectors[i]
		b = keyValue(keyText(keyText(b, s.Key), string(s.Operator)), s.Value)
	}
	b = binary.AppendUvarint(b, uint64(len(q.Candidates)))
	for i := range q.Candidates {
		b = keyNumber(b, q.Candidates[i].Price)
	}
	return b
}

// AppendFunctionKey appends a key of the function that is asked and of how it is asked. It compares
// by value, because another routing has new copies of the same functions. Timeout and cache time
// are not part of it.
func AppendFunctionKey(b []byte, f *Function) []byte {
	b = keyLabels(keyText(keyText(b, f.URL), f.Token), f.Parameters)
	if f.Batch {
		return binary.AppendUvarint(append(b, 'b'), uint64(f.BatchSize))
	}
	return append(b, 'o')
}

func keyText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func keyNumber(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(f))
}

func keyValue(b []byte, v selector.Value) []byte {
	if v.IsNumber {
		return keyNumber(append(b, 'n'), v.Number)
	}
	return keyText(append(b, 't'), v.Text)
}

func keyLabels(b []byte, labels map[string]selector.Value) []byte {
	b = binary.AppendUvarint(b, uint64(len(labels)))
	if len(labels) == 1 { // spares the sorting
		for name, v := range labels {
			return keyValue(keyText(b, name), v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b = keyValue(keyText(b, name), labels[name])
	}
	return b
}
