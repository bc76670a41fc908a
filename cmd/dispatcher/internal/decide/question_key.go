package decide

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"dispatcher/selector"
)

// The key of a question is a text in which every part says how long it is, so that two questions
// have the same key only when they are the same. Labels count without their order, selectors and
// candidates with it.

// AppendKey appends the key of all that a function is told by a question.
func (q *ScoreQuestion) AppendKey(b []byte) []byte {
	b = q.appendMessageKey(b)
	for i := range q.Candidates {
		c := &q.Candidates[i]
		b = keyText(keyLabels(keyText(b, c.Channel), c.Labels), c.Currency)
	}
	return b
}

// messageKey is the part of the key in which questions of one routing can differ: names, labels and
// currencies of channels do not.
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

// AppendFunctionKey appends the key of whom a question is put to, and how: another routing makes
// new values of the same functions. How long it may take and how long an answer holds are not part
// of it.
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
