package ledger

import "time"

// nearDeadline is how little time before its deadline a row is picked up before all others of its lane, in
// whatever turn; see dispatcher.due_in_turns.
const nearDeadline = time.Minute

// lastTurn is the tenant after which the next due rows begin; see dispatcher.due.
func (l *Ledger) lastTurn() string {
	if tenant := l.turn.Load(); tenant != nil {
		return *tenant
	}
	return ""
}

// nextTurn remembers where the next due rows begin, whatever became of this claim.
func (l *Ledger) nextTurn(t *claimTx) {
	if turn := t.turn(); turn != t.behind {
		l.turn.Store(&turn)
	}
}

// turn is the tenant that had the last turn. Whose row was left because its limits were not locked has not had
// it: the next claim begins with that row, since it is the one that locks them. If the turns went on, tenants whose limits
// are too many to be locked at once would come round unlocked again and again.
//
// Only the least urgent lane counts, which is the last one: of the others all rows were picked up, whoever's turn it was, as
// were those near their deadline.
func (t *claimTx) turn() string {
	turn := t.behind
	if len(t.seen.Messages) <= len(t.request.Messages) {
		return turn // nothing was due, or the database went away before it said so
	}
	due := t.seen.Messages[len(t.request.Messages):]
	lane, soon := due[len(due)-1].Lane, t.seen.Now.Add(nearDeadline)
	for i := range due {
		if due[i].Lane != lane || !due[i].ExpiresAt.IsZero() && !due[i].ExpiresAt.After(soon) {
			continue
		}
		if t.unlocked(len(t.request.Messages) + i) {
			break
		}
		turn = due[i].Tenant
	}
	return turn
}

// unlocked reports whether a message was left because its limits were not locked. Of a claim that failed before anything
// was decided none was: the next one had better try other rows.
func (t *claimTx) unlocked(i int) bool {
	return i < len(t.decisions.Each) && t.decisions.Each[i].Unlocked
}
