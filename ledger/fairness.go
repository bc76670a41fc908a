package ledger

import (
	"maps"
	"sync"
	"time"
)

// nearDeadline is how long before its deadline a row is picked up before all others of its lane,
// whatever its tenant's turn. dispatcher.pick_in_turns has the same minute.
const nearDeadline = time.Minute

// turns holds, by lane, the tenant that had the last turn. The next claim of due rows begins with
// the tenant after it, see dispatcher.pick_in_turns. Each lane has its own turn. Otherwise a claim
// that picks up only rows of an urgent lane would move the turn of a bulk lane, and tenants there
// would never get theirs.
//
// The zero value is ready to use. It is safe for concurrent use.
type turns struct {
	mu   sync.Mutex
	last map[string]string // guarded by mu; replaced as a whole, never modified
}

// now returns the last turns. The caller must not modify the map.
func (t *turns) now() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// move sets the last turn of a lane to tenant, for a claim that began when was had the last
// turn. When another claim has moved the turn meanwhile, move does nothing: otherwise tenants that
// have had a turn since would have another.
func (t *turns) move(lane string, was, tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was == tenant || t.last[lane] != was {
		return
	}
	next := make(map[string]string, len(t.last)+1)
	maps.Copy(next, t.last)
	next[lane] = tenant
	t.last = next
}

// passTurn moves the turn to where the next due rows begin, whether or not the claim was committed.
func (t *Tx) passTurn(turns *turns) {
	lane, tenant := t.lastTurn()
	turns.move(lane, t.turnsBefore[lane], tenant)
}

// lastTurn returns the tenant that had the last turn in this claim, and its lane. A tenant whose
// row was left as it is because its limits were not locked has not had its turn: the next claim
// begins with that row, and locks its limits. If the turn moved on, tenants that have too many
// limits to lock all at once would be left unlocked again and again.
//
// Only the least urgent lane counts, which is the last one: all due rows of the other lanes were
// picked up, and so were rows near their deadline, whatever their turn.
func (t *Tx) lastTurn() (lane, tenant string) {
	if len(t.seen.Messages) <= len(t.request.Messages) {
		return "", t.turnsBefore[""] // nothing was due, or the database went away before it said so
	}
	due := t.seen.Messages[len(t.request.Messages):]
	lane, soon := due[len(due)-1].Lane, t.seen.Now.Add(nearDeadline)
	tenant = t.turnsBefore[lane]
	for i := range due {
		if due[i].Lane != lane || !due[i].ExpiresAt.IsZero() && !due[i].ExpiresAt.After(soon) {
			continue
		}
		if t.unlocked(len(t.request.Messages) + i) {
			break
		}
		tenant = due[i].Tenant
	}
	return lane, tenant
}

// unlocked reports whether a message was left as it is because its limits were not locked. It is
// false in a claim that failed before it decided: the next claim then begins with other rows.
func (t *Tx) unlocked(i int) bool {
	return i < len(t.decisions.Each) && t.decisions.Each[i].Unlocked
}
