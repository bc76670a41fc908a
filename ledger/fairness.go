package ledger

import (
	"maps"
	"sync"
	"time"
)

// nearDeadline is how little time before its deadline a row is picked up before all others of its
// lane, in whatever turn; see dispatcher.due_in_turns.
const nearDeadline = time.Minute

// turns are the tenants that had the last turn, by lane: behind them begin the next due rows, see
// dispatcher.due_in_turns. Each lane has its own, since a claim may pick up rows of an urgent one
// alone: if that moved the turn of a campaign, those whose turn it is would be passed over for
// ever.
//
// The zero value knows of nobody. It is safe for concurrent use.
type turns struct {
	mu   sync.Mutex
	last map[string]string // guarded by mu; replaced, never written to
}

// now are those that a claim begins behind. They are not to be written to.
func (t *turns) now() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// move passes the turn of a lane on to the tenant that had the last one in a claim that began
// behind so. A claim that was overtaken moves nothing: who had a turn since then would have it
// again.
func (t *turns) move(lane string, behind, tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if behind == tenant || t.last[lane] != behind {
		return
	}
	next := make(map[string]string, len(t.last)+1)
	maps.Copy(next, t.last)
	next[lane] = tenant
	t.last = next
}

// passTurn remembers where the next due rows begin, whatever became of this claim.
func (t *Tx) passTurn(turns *turns) {
	lane, tenant := t.turn()
	turns.move(lane, t.behind[lane], tenant)
}

// turn is the tenant that had the last turn, and the lane in which it had that. Whose row was left
// because its limits were not locked has not had it: the next claim begins with that row, since it
// is the one that locks them. If the turns went on, tenants whose limits are too many to be locked
// at once would come round unlocked again and again.
//
// Only the least urgent lane counts, which is the last one: of the others all rows were picked up,
// whoever's turn it was, as were those near their deadline.
func (t *Tx) turn() (lane, tenant string) {
	if len(t.seen.Messages) <= len(t.request.Messages) {
		return "", t.behind[""] // nothing was due, or the database went away before it said so
	}
	due := t.seen.Messages[len(t.request.Messages):]
	lane, soon := due[len(due)-1].Lane, t.seen.Now.Add(nearDeadline)
	tenant = t.behind[lane]
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

// unlocked reports whether a message was left because its limits were not locked. Of a claim that
// failed before anything was decided none was: the next one had better try other rows.
func (t *Tx) unlocked(i int) bool {
	return i < len(t.decisions.Each) && t.decisions.Each[i].Unlocked
}
