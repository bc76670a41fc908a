package selector

import "time"

// Unexpired returns the selectors that have not expired for a message received age ago: those
// without ExpiresAfter and those whose ExpiresAfter is above age. When none has expired, it returns
// the given slice and allocates nothing; it never changes that slice.
func Unexpired(selectors []Selector, age time.Duration) []Selector {
	for i := range selectors {
		if selectors[i].expired(age) {
			return unexpired(selectors, i, age)
		}
	}
	return selectors
}

// unexpired copies the selectors that have not expired; first is the index of the first that has.
func unexpired(selectors []Selector, first int, age time.Duration) []Selector {
	out := make([]Selector, first, len(selectors)-1)
	copy(out, selectors)
	for _, s := range selectors[first+1:] {
		if !s.expired(age) {
			out = append(out, s)
		}
	}
	return out
}

func (s *Selector) expired(age time.Duration) bool {
	return s.ExpiresAfter != 0 && age >= s.ExpiresAfter
}
