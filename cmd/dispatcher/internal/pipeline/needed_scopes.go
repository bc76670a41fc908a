package pipeline

import (
	"sync"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// neededFor is how long a scope is remembered that nobody needs any more. A claim notes what it has
// seen when it ends and the next one reads that before it waits for anything, slots and locks
// included: it knows however long it waits then.
const neededFor = 2 * admission.MaxCommitLatency

// neededScopes remembers those whose limits count due rows that were seen lately. Such rows are
// seen only inside a claim, when it is too late to lock any more: the claim leaves them as they
// are, and the next one, which follows at once, locks what they need.
type neededScopes struct {
	mu     sync.Mutex
	scopes map[ledger.ScopeRef]time.Time // guarded by mu; when they were needed last
}

// note remembers scopes, and of those that were needed before as many as there is room for.
func (n *neededScopes) note(needed []ledger.ScopeRef, now time.Time) {
	if len(needed) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	scopes := make(map[ledger.ScopeRef]time.Time, len(needed))
	for _, ref := range needed {
		scopes[ref] = now
	}
	for ref, at := range n.scopes {
		if _, again := scopes[ref]; !again && len(scopes) < decide.MaxNeeded &&
			now.Sub(at) <= neededFor {
			scopes[ref] = at
		}
	}
	n.scopes = scopes
}

// open lists what was needed lately.
func (n *neededScopes) open(now time.Time) (refs []ledger.ScopeRef) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for ref, at := range n.scopes {
		if now.Sub(at) > neededFor {
			delete(n.scopes, ref)
		} else {
			refs = append(refs, ref)
		}
	}
	return refs
}
