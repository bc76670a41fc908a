package scoring

import (
	"maps"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// restTime is how long a function rests, which means that it is not called, after it could not be
// reached, did not answer in time, or answered with a status that is not about the question. It
// does not rest if another question got a good answer meanwhile: then the function works, and only
// this question was too much for it. During a rest all questions get the same word at once, so a
// dead function costs at most one deadline a second. Afterwards one question tries first. An answer
// that is invalid for its question is remembered for the same time, for that question alone.
const restTime = time.Second

// forgetAfter is when the record of a function is deleted.
const forgetAfter = time.Minute

// identity compares functions by value, because a reload of the routing makes new copies of them.
type identity struct {
	url, token   string
	allowPrivate bool
}

func identify(f *decide.Function) identity { return identity{f.URL, f.Token, f.AllowPrivate} }

// rests are the functions that were asked recently.
type rests struct {
	mu sync.Mutex
	of map[identity]*rest // guarded by mu
}

// rest is the state of one function.
type rest struct {
	word     string // of its trouble; empty when it has none
	until    time.Time
	tried    bool // a question is trying whether the trouble has passed
	answered time.Time
}

func newRests() *rests { return &rests{of: map[identity]*rest{}} }

// resting is the word of a function that may not be asked now; empty when it may.
func (r *rests) resting(id identity, now time.Time) (word string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.of[id]; current != nil {
		return current.now(now)
	}
	return ""
}

// now is the word while it applies.
func (r *rest) now(now time.Time) (word string) {
	if r.tried || now.Before(r.until) {
		return r.word
	}
	return ""
}

// enter asks whether the function may be asked now; otherwise the word says why not. If it may, the
// caller must call leave or forgo.
func (r *rests) enter(id identity, now time.Time) (word string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.of[id]
	if current == nil {
		return ""
	}
	if word := current.now(now); word != "" {
		return word
	}
	current.tried = current.word != ""
	return ""
}

// leave records the result of the asking that began at that time: the word of a trouble, or empty.
// It reports whether the function rests now.
func (r *rests) leave(id identity, word string, began, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Functions that no routing names any more are never asked again and would stay here for ever.
	maps.DeleteFunc(r.of, func(_ identity, old *rest) bool {
		return !old.tried && now.Sub(old.until) > forgetAfter && now.Sub(old.answered) > forgetAfter
	})
	if word == "" {
		r.of[id] = &rest{answered: now}
		return false
	}
	current := r.of[id]
	if current == nil {
		current = &rest{}
		r.of[id] = current
	}
	current.tried = false
	if current.answered.After(began) {
		return false
	}
	current.word, current.until = word, now.Add(restTime)
	return true
}

// forgo undoes an enter without a result, so that another question tries.
func (r *rests) forgo(id identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.of[id]; current != nil {
		current.tried = false
	}
}
