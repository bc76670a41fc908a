package scoring

import (
	"maps"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// pauseTime is how long a function is not called after it could not be reached, did not answer in
// time, or answered with a status that is not about the question. There is no pause if another
// question got a good answer meanwhile: then the function works, and only this question was too
// much for it. During a pause all questions get the same word at once, so a dead function costs at
// most one deadline a second. Afterwards one question tries first. An answer that is invalid for
// its question is remembered for the same time, for that question alone.
const pauseTime = time.Second

// forgetAfter is when the record of a function is deleted.
const forgetAfter = time.Minute

// identity compares functions by value, because a reload of the routing makes new copies of them.
type identity struct {
	url, token   string
	allowPrivate bool
}

func identify(f *decide.Function) identity { return identity{f.URL, f.Token, f.AllowPrivate} }

// functionStates are the states of functions that were asked recently.
type functionStates struct {
	mu sync.Mutex
	of map[identity]*functionState // guarded by mu
}

// functionState is the state of one function.
type functionState struct {
	word     string // of its trouble; empty when it has none
	until    time.Time
	trying   bool // a question is trying whether the trouble has passed
	answered time.Time
}

func newFunctionStates() *functionStates {
	return &functionStates{of: map[identity]*functionState{}}
}

// paused is the word of a function that may not be asked now; empty when it may be asked.
func (s *functionStates) paused(id identity, now time.Time) (word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current := s.of[id]; current != nil {
		return current.paused(now)
	}
	return ""
}

// paused is the word while the pause lasts.
func (s *functionState) paused(now time.Time) (word string) {
	if s.trying || now.Before(s.until) {
		return s.word
	}
	return ""
}

// begin reports whether the function may be asked now: the word says why not, and is empty if it
// may. In that case the caller must call end or withdraw.
func (s *functionStates) begin(id identity, now time.Time) (word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.of[id]
	if current == nil {
		return ""
	}
	if word := current.paused(now); word != "" {
		return word
	}
	current.trying = current.word != ""
	return ""
}

// end records the result of a call that began at that time: the word of a trouble, or empty. It
// reports whether the function is paused now.
func (s *functionStates) end(id identity, word string, began, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Functions that no routing names any more are never asked again and would stay here for ever.
	maps.DeleteFunc(s.of, func(_ identity, old *functionState) bool {
		return !old.trying && now.Sub(old.until) > forgetAfter && now.Sub(old.answered) > forgetAfter
	})
	if word == "" {
		s.of[id] = &functionState{answered: now}
		return false
	}
	current := s.of[id]
	if current == nil {
		current = &functionState{}
		s.of[id] = current
	}
	current.trying = false
	if current.answered.After(began) {
		return false
	}
	current.word, current.until = word, now.Add(pauseTime)
	return true
}

// withdraw undoes a begin without a result, so that another question tries.
func (s *functionStates) withdraw(id identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current := s.of[id]; current != nil {
		current.trying = false
	}
}
