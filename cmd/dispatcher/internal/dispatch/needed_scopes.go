package dispatch

import (
	"slices"
	"sync"
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// Bounds of what is remembered about the scopes of due rows.
const (
	// neededFor is how long a scope is remembered that nobody needs any more. A claim notes what it
	// has seen when it ends and the next one reads that before it waits for anything, slots and
	// locks included: it knows however long it waits then.
	neededFor = 2 * admission.MaxCommitLatency
	maxNeeded = 1024
)

// neededScopes remembers those whose limits count due rows that were seen lately. Such rows are
// seen only inside a claim, when it is too late to lock any more: the claim leaves them as they
// are, and the next one, which follows at once, locks what they need.
type neededScopes struct {
	mu     sync.Mutex
	scopes map[ledger.ScopeRef]time.Time // guarded by mu; when they were needed last
}

// note remembers the scopes at some places of the index, and of those that were needed before as
// many as there is room for.
func (n *neededScopes) note(x *scopeIndex, places []int, now time.Time) {
	if len(places) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	scopes := make(map[ledger.ScopeRef]time.Time, len(places))
	for _, place := range places {
		scopes[x.narrower[place].ScopeRef] = now
	}
	for ref, at := range n.scopes {
		if _, again := scopes[ref]; !again && len(scopes) < maxNeeded && now.Sub(at) <= neededFor {
			scopes[ref] = at
		}
	}
	n.scopes = scopes
}

// open lists the places of what was needed lately, as far as the index still knows it, ascending.
func (n *neededScopes) open(x *scopeIndex, now time.Time) (places []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for ref, at := range n.scopes {
		if now.Sub(at) > neededFor {
			delete(n.scopes, ref)
		} else if place, ok := x.places[ref]; ok {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return places
}
