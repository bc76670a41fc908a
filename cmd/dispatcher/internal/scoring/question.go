package scoring

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/selector"
)

// body is the JSON of one call. Labels and parameters are texts and numbers.
type body struct {
	Route      string          `json:"route"`
	Lane       string          `json:"lane"`
	Labels     map[string]any  `json:"labels"`
	Selectors  []wish          `json:"selectors"`
	Candidates []candidateBody `json:"candidates"`
	Parameters map[string]any  `json:"parameters"`
}

type wish struct {
	Key      string            `json:"key"`
	Operator selector.Operator `json:"operator"`
	Value    any               `json:"value"`
}

type candidateBody struct {
	Channel string         `json:"channel"`
	Labels  map[string]any `json:"labels"`
	Price   float64        `json:"price"`
}

// encode makes the body of the call about some of the question's candidates.
func encode(f *dispatch.Function, q *dispatch.ScoreQuestion, about []dispatch.ScoreCandidate) ([]byte, error) {
	b := body{
		Route: q.Route, Lane: q.Lane, Labels: plain(q.Labels), Parameters: plain(f.Parameters),
		Selectors: make([]wish, len(q.Selectors)), Candidates: make([]candidateBody, len(about)),
	}
	for i, s := range q.Selectors {
		b.Selectors[i] = wish{s.Key, s.Operator, plainValue(s.Value)}
	}
	for i, c := range about {
		b.Candidates[i] = candidateBody{c.Channel, plain(c.Labels), c.Price}
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

// key names a question: equal keys have equal answers. It is a digest, so that the memory that the
// cache takes does not depend on how long labels are.
type key [sha256.Size]byte

// keyOf digests all that a function could go by, and the function itself. Labels count without
// their order; selectors and candidates with it.
func keyOf(f *dispatch.Function, q *dispatch.ScoreQuestion) key {
	k := canon(make([]byte, 0, 1024))
	k = k.text(f.URL).text(f.Token).labels(f.Parameters)
	k = k.flag(f.Batch).number(uint64(f.BatchSize))
	k = k.text(q.Route).text(q.Lane).labels(q.Labels)
	k = k.number(uint64(len(q.Selectors)))
	for i := range q.Selectors {
		s := &q.Selectors[i]
		k = k.text(s.Key).text(string(s.Operator)).value(s.Value)
	}
	for i := range q.Candidates {
		c := &q.Candidates[i]
		k = k.text(c.Channel).labels(c.Labels).number(math.Float64bits(c.Price))
	}
	return sha256.Sum256(k)
}

// canon is a text in which every part says how long it is, so that no two questions
// have the same one.
type canon []byte

func (c canon) number(n uint64) canon { return binary.AppendUvarint(c, n) }

func (c canon) text(s string) canon { return append(c.number(uint64(len(s))), s...) }

func (c canon) flag(b bool) canon {
	if b {
		return append(c, 1)
	}
	return append(c, 0)
}

func (c canon) value(v selector.Value) canon {
	if v.IsNumber {
		return c.flag(true).number(math.Float64bits(v.Number))
	}
	return c.flag(false).text(v.Text)
}

func (c canon) labels(labels map[string]selector.Value) canon {
	c = c.number(uint64(len(labels)))
	if len(labels) == 1 { // spares the sorting
		for k, v := range labels {
			return c.text(k).value(v)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		c = c.text(k).value(labels[k])
	}
	return c
}
