package ledger

import (
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// receiptWrites are the changes that receipts bring, column by column.
type receiptWrites struct {
	tries struct {
		seq                           []int64
		number                        []int16
		accepted, frees               []bool
		reference, state, cause, code []string
		at, contradicted              []pgtype.Timestamptz
	}
	closed struct {
		seq           []int64
		state, reason []string
		duplicate     []bool
	}
	due struct {
		channel, reference []string
		wait               []*int64 // microseconds; nil for never
	}
	dropped struct{ channel, reference []string }
	flagged []int64          // messages that may have reached their subscribers twice
	slots   map[string]int64 // freed, by channel
	notices []Notice

	oddities []Discrepancy // for the log
}

// try adds what changes about an attempt.
func (w *receiptWrites) try(seq int64, t *attemptStatus) {
	c := &w.tries
	c.seq, c.number = append(c.seq, seq), append(c.number, int16(t.number))
	c.accepted, c.frees = append(c.accepted, t.accepted), append(c.frees, t.frees)
	c.reference, c.state = append(c.reference, t.reference), append(c.state, string(t.says.state))
	c.cause, c.code = append(c.cause, string(t.says.cause)), append(c.code, t.says.code)
	c.at, c.contradicted = append(c.at, instant(t.says.at)), append(c.contradicted, instant(t.contradictedAt()))
	if t.frees {
		if w.slots == nil {
			w.slots = map[string]int64{}
		}
		w.slots[t.channel]++
	}
}

// odd notes what a receipt says otherwise than the books do.
func (w *receiptWrites) odd(t *attemptStatus, p *part) {
	kind := DeliveredThoughDenied
	switch {
	case t.otherID(p):
		kind = UnderAnotherID
	case !t.contradictedBy(p):
		return
	}
	o := Discrepancy{Kind: kind, Channel: p.channel, Reference: p.reference, Answered: t.reference}
	if p.whole() {
		o.Reference = ""
	}
	w.oddities = append(w.oddities, o)
}

// close adds the new state of a message. The cause is the reason of undelivered.
func (w *receiptWrites) close(c *Closing) {
	w.closed.seq, w.closed.state = append(w.closed.seq, c.Seq), append(w.closed.state, string(c.State))
	w.closed.reason, w.closed.duplicate = append(w.closed.reason, string(c.Cause)), append(w.closed.duplicate, c.PossibleDuplicate)
}

// look adds when somebody has to look at a part again; 0 is never.
func (w *receiptWrites) look(p *part, wait time.Duration) {
	w.due.channel, w.due.reference = append(w.due.channel, p.channel), append(w.due.reference, p.reference)
	var micros *int64
	if wait > 0 {
		n := wait.Microseconds()
		micros = &n
	}
	w.due.wait = append(w.due.wait, micros)
}

// drop deletes the row of an id that came with a denial, when its time is over and no receipt has
// called it delivered.
func (w *receiptWrites) drop(p *part) {
	w.dropped.channel, w.dropped.reference = append(w.dropped.channel, p.channel), append(w.dropped.reference, p.reference)
}

// freed is how many slots are given back.
func (w *receiptWrites) freed() (n int64) {
	for _, count := range w.slots {
		n += count
	}
	return n
}

// queue adds the statements, in the order of locks.
func (w *receiptWrites) queue(batch *pgx.Batch) {
	if c := &w.due; len(c.channel) > 0 {
		batch.Queue(updateDue, c.channel, c.reference, c.wait)
	}
	if c := &w.dropped; len(c.channel) > 0 {
		batch.Queue(dropRows, c.channel, c.reference)
	}
	if c := &w.tries; len(c.seq) > 0 {
		batch.Queue(updateAttemptRows, c.seq, c.number, c.accepted, c.reference, c.state, c.cause, c.code, c.at, c.frees, c.contradicted)
	}
	if c := &w.closed; len(c.seq) > 0 {
		batch.Queue(updateStatuses, c.seq, c.state, c.reason, c.duplicate)
	}
	if len(w.flagged) > 0 {
		batch.Queue(flagMessages, w.flagged)
	}
	if len(w.slots) > 0 {
		channels := slices.Sorted(maps.Keys(w.slots))
		counts := make([]int64, len(channels))
		for i, name := range channels {
			counts[i] = w.slots[name]
		}
		batch.Queue(lowerActive, channels, counts)
	}
	for _, box := range pack(w.notices) {
		batch.Queue(insertOutbox, box.kind, box.keys, box.values, box.headers)
	}
}
