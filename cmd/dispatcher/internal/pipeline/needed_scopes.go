package pipeline

import (
	"sync"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// neededFor is how long a scope is remembered after it was last needed. A claim records scopes when
// it ends. The next claim reads them before it waits for slots and locks, so its waiting time does
// not count.
const neededFor = 2 * admission.MaxCommitLatency

// neededScopes remembers the scopes of limits that count recently seen due rows. A claim sees these
// rows only inside its transaction, when it is too late to lock more. So the claim leaves them
// unchanged, and the next one, which follows at once, locks what they need.
type neededScopes struct {
	mu     sync.Mutex
	scopes map[ledger.ScopeRef]time.Time // guarded by mu; when they were needed last
}

// note adds scopes, and keeps as many of the earlier ones as there is room for.
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

// open lists the scopes that were needed recently.
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
