package scoring

import (
	"maps"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// restTime is for how long a function is not called after it could not be reached, did not answer
// in time, or answered with a status that is not about the question. There is no such rest if
// another question got a good answer meanwhile: then the function works, and only this question was
// too much for it. During a rest all questions get the same word at once, so a dead function costs
// at most one deadline a second. Afterwards one question tries first. An answer that is wrong for
// its question is remembered for as long, for that question alone.
const restTime = time.Second

// forgetAfter is when what a function did is worth no memory any more.
const forgetAfter = time.Minute

// identity tells functions apart: a reload of the routing makes new values of the same ones.
type identity struct {
	url, token   string
	allowPrivate bool
}

func identify(f *decide.Function) identity { return identity{f.URL, f.Token, f.AllowPrivate} }

// rests are the functions that were asked lately.
type rests struct {
	mu sync.Mutex
	of map[identity]*rest // guarded by mu
}

// rest is what is known of one function.
type rest struct {
	word     string // of its trouble; empty when it has none
	until    time.Time
	tried    bool // somebody is trying whether the trouble has passed
	answered time.Time
}

func newRests() *rests { return &rests{of: map[identity]*rest{}} }

// resting is the word of a function that nobody may ask now; empty when somebody may.
func (r *rests) resting(f identity, now time.Time) (word string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.of[f]; current != nil {
		return current.now(now)
	}
	return ""
}

// now is the word while it counts.
func (r *rest) now(now time.Time) (word string) {
	if r.tried || now.Before(r.until) {
		return r.word
	}
	return ""
}

// enter asks whether the function may be asked now; the word says why not. Whoever may
// must call leave or forgo.
func (r *rests) enter(f identity, now time.Time) (word string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.of[f]
	if current == nil {
		return ""
	}
	if word := current.now(now); word != "" {
		return word
	}
	current.tried = current.word != ""
	return ""
}

// leave tells how the asking that began at that time went: the word of a trouble, or none. It
// reports whether the function rests now.
func (r *rests) leave(f identity, word string, began, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Functions that no routing names any more are not asked again and would stay for ever.
	maps.DeleteFunc(r.of, func(_ identity, old *rest) bool {
		return !old.tried && now.Sub(old.until) > forgetAfter && now.Sub(old.answered) > forgetAfter
	})
	if word == "" {
		r.of[f] = &rest{answered: now}
		return false
	}
	current := r.of[f]
	if current == nil {
		current = &rest{}
		r.of[f] = current
	}
	current.tried = false
	if current.answered.After(began) {
		return false
	}
	current.word, current.until = word, now.Add(restTime)
	return true
}

// forgo takes back an enter that came to nothing: somebody else has to try.
func (r *rests) forgo(f identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.of[f]; current != nil {
		current.tried = false
	}
}
