package scoring

import (
	"maps"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/dispatch"
)

// restTime is how long a function is not asked again after it could not be reached, did not
// answer in time or answered with a status that would meet any question. Everybody who
// asks meanwhile gets the same word at once, so a dead function costs at most one deadline a
// second. Afterwards one question tries first. An answer that is wrong for its question is
// remembered as long, for that question alone.
const restTime = time.Second

// forgetAfter is when an old trouble is worth no memory any more.
const forgetAfter = time.Minute

// identity tells functions apart: a reload of the routing makes new values of the same ones.
type identity struct{ url, token string }

func identify(f *dispatch.Function) identity { return identity{f.URL, f.Token} }

// rests are the functions that have failed lately.
type rests struct {
	mu sync.Mutex
	of map[identity]*rest // guarded by mu
}

// rest is the trouble of one function.
type rest struct {
	word  string
	until time.Time
	tried bool // somebody is trying whether it has passed
}

func newRests() *rests { return &rests{of: map[identity]*rest{}} }

// enter asks whether the function may be asked now; the word says why not. Whoever may
// must call leave or forgo.
func (r *rests) enter(f identity, now time.Time) (word string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.of[f]
	switch {
	case current == nil:
		return ""
	case current.tried || now.Before(current.until):
		return current.word
	}
	current.tried = true
	return ""
}

// leave tells how it went: the word of a trouble, or none.
func (r *rests) leave(f identity, word string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Functions that no routing names any more are not asked again and would stay for ever.
	maps.DeleteFunc(r.of, func(_ identity, old *rest) bool { return now.Sub(old.until) > forgetAfter })
	if word == "" {
		delete(r.of, f)
		return
	}
	r.of[f] = &rest{word: word, until: now.Add(restTime)}
}

// forgo takes back an enter that came to nothing: somebody else has to try.
func (r *rests) forgo(f identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.of[f]; current != nil {
		current.tried = false
	}
}
