package selector

// Matcher gives many channels their default scores at once. It indexes their labels by key, so that
// a message costs one look-up for each of its labels and selectors instead of one per channel. It
// is immutable and safe for concurrent use.
type Matcher struct {
	channels int
	columns  map[string][]cell
}

// cell is what one channel has under a key.
type cell struct {
	value Value
	found bool
}

// NewMatcher returns a Matcher for the labels of the channels. Scores uses the same order.
func NewMatcher(channels []map[string]Value) *Matcher {
	m := &Matcher{channels: len(channels), columns: make(map[string][]cell)}
	for i, labels := range channels {
		for key, value := range labels {
			if m.columns[key] == nil {
				m.columns[key] = make([]cell, len(channels))
			}
			m.columns[key][i] = cell{value: value, found: true}
		}
	}
	return m
}

// Scores writes the score of each channel into scores, equal to what Match returns for it.
func (m *Matcher) Scores(labels map[string]Value, selectors []Selector, scores []float64) {
	scores = scores[:m.channels]
	terms := len(labels) + len(selectors)
	if terms == 0 {
		for i := range scores {
			scores[i] = 1
		}
		return
	}
	clear(scores)
	for key, want := range labels {
		for i, have := range m.columns[key] {
			if have.found && have.value == want {
				scores[i]++
			}
		}
	}
	for i := range selectors {
		m.add(&selectors[i], scores)
	}
	for i := range scores {
		scores[i] /= float64(terms)
	}
}

// add adds the selector's term to the sum of each channel.
func (m *Matcher) add(s *Selector, sums []float64) {
	column, found := m.columns[s.Key]
	if !found {
		absent := s.term(Value{}, false)
		for i := range sums {
			sums[i] += absent
		}
		return
	}
	for i := range column {
		sums[i] += s.term(column[i].value, column[i].found)
	}
}
