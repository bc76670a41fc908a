package scoring

import (
	"crypto/sha256"
	"encoding/json"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/selector"
)

// body is the JSON of one call. Labels and parameters are texts and numbers.
type body struct {
	Route      string          `json:"route"`
	Lane       string          `json:"lane"`
	Labels     map[string]any  `json:"labels"`
	Selectors  []selectorBody  `json:"selectors"`
	Candidates []candidateBody `json:"candidates"`
	Parameters map[string]any  `json:"parameters"`
}

type selectorBody struct {
	Key      string            `json:"key"`
	Operator selector.Operator `json:"operator"`
	Value    any               `json:"value"`
}

type candidateBody struct {
	Channel  string         `json:"channel"`
	Labels   map[string]any `json:"labels"`
	Price    float64        `json:"price"`
	Currency string         `json:"currency,omitempty"`
}

// encode makes the body of the call about some of the question's candidates.
func encode(
	f *decide.Function, q *decide.ScoreQuestion, about []decide.ScoreCandidate,
) ([]byte, error) {
	b := body{
		Route: q.Route, Lane: q.Lane, Labels: plain(q.Labels), Parameters: plain(f.Parameters),
		Selectors: make([]selectorBody, len(q.Selectors)), Candidates: make([]candidateBody,
			len(about)),
	}
	for i, s := range q.Selectors {
		b.Selectors[i] = selectorBody{s.Key, s.Operator, plainValue(s.Value)}
	}
	for i, c := range about {
		b.Candidates[i] = candidateBody{c.Channel, plain(c.Labels), c.Price, c.Currency}
	}
	return json.Marshal(b)
}

func plain(labels map[string]selector.Value) map[string]any {
	out := make(map[string]any, len(labels))
	for k, v := range labels {
		out[k] = plainValue(v)
	}
	return out
}

func plainValue(v selector.Value) any {
	if v.IsNumber {
		return v.Number
	}
	return v.Text
}

// key identifies a question: equal keys have equal answers. It is a digest, so that the memory of
// the cache does not depend on the length of labels.
type key [sha256.Size]byte

// keyOf digests everything that the answer may depend on, and the function itself.
func keyOf(f *decide.Function, q *decide.ScoreQuestion) key {
	return sha256.Sum256(q.AppendKey(decide.AppendFunctionKey(make([]byte, 0, 1024), f)))
}
