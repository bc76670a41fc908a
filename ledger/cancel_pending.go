package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Later stores the cancellation of a message that is not in the ledger yet, and records who asked
// for it. The claim that stores the message ends it. The same id again changes nothing, but waits
// until the first is durable. A claim that was under way may have stored the message without seeing
// this: see Arrived.
func (s *Cancellations) Later(ctx context.Context, id string, by Canceller) error {
	batch := &pgx.Batch{}
	batch.Queue(`
		with stored as (
		  insert into dispatcher.pending_cancellations (id, author, reason, via)
		  values ($1, $2, $3, $4) on conflict (id) do nothing
		  returning id, author, reason, via
		)
		insert into dispatcher.operator_actions (author, reason, action, subject, via)
		select author, reason, 'cancel_pending', id, via from stored`,
		id, storable(by.Author), storable(by.Reason), string(by.Via))
	batch.Queue(replicationBarrier)
	return wrap("store a cancellation", s.hot.SendBatch(ctx, batch).Close())
}

// PendingCancellation is one that Later has stored.
type PendingCancellation struct {
	ID string // of the message
	At time.Time
	Canceller
}

func scanPending(r pgx.CollectableRow) (p PendingCancellation, err error) {
	err = r.Scan(&p.ID, &p.Author, &p.Reason, &p.Via, &p.At)
	p.At = p.At.UTC()
	return p, err
}

// Pending is the pending cancellation of a message, without its reason; nil for none. Finance may
// read it too.
func (s *Cancellations) Pending(ctx context.Context, id string) (*PendingCancellation, error) {
	found, err := rows(ctx, s.db, scanPending, `
		select id, author, '', via, at from facts.pending_cancellations where id = $1`, storable(id))
	if err != nil || len(found) == 0 {
		return nil, wrap("read a pending cancellation", err)
	}
	return &found[0], nil
}

// CountPending is how many cancellations are pending, and when the oldest was stored; the zero time
// for none.
func (s *Cancellations) CountPending(ctx context.Context) (n int64, oldest time.Time, err error) {
	var at *time.Time
	err = s.reports.QueryRow(ctx, `
		select count(*), min(at) from dispatcher.pending_cancellations`).Scan(&n, &at)
	if at != nil {
		oldest = at.UTC()
	}
	return n, oldest, wrap("count pending cancellations", err)
}

// Arrived lists pending cancellations of the last hour whose message is in the ledger by now, the
// latest first. The claim that stored such a message began before the cancellation was stored.
func (s *Cancellations) Arrived(ctx context.Context) ([]PendingCancellation, error) {
	found, err := rows(ctx, s.db, scanPending, `
		select id, author, reason, via, at from dispatcher.pending_cancellations p
		where at > now() - interval '1 hour'
		  and exists (select from facts.ids i where i.id = p.id)
		order by at desc limit 100`)
	return found, wrap("list pending cancellations", err)
}

// Forget removes the pending cancellation of a message.
func (s *Cancellations) Forget(ctx context.Context, id string) error {
	_, err := s.hot.Exec(ctx, `delete from dispatcher.pending_cancellations where id = $1`, id)
	return wrap("remove a pending cancellation", err)
}

// selectPending finds the cancellations of new messages.
const selectPending = `select id from dispatcher.pending_cancellations where id = any($1)`

// carryOut removes the pending cancellations of the messages in $1. For the messages in $2, which
// are ended, it records in operator_actions that the cancellation was carried out.
const carryOut = `
	with gone as (
	  delete from dispatcher.pending_cancellations where id = any($1)
	  returning id, author, reason, via
	)
	insert into dispatcher.operator_actions (author, reason, action, subject, via)
	select author, reason, 'cancel', id, via from gone where id = any($2)`

// askPending reads the pending cancellations in a separate round trip.
func (t *Tx) askPending(ctx context.Context) error {
	return t.readPending(t.conn.Query(ctx, selectPending, t.ids()))
}

// readPending marks the new messages that were cancelled before they came. Seen.Intakes is set by
// then.
func (t *Tx) readPending(rows pgx.Rows, err error) error {
	if err != nil {
		return err
	}
	pending, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(pending) == 0 {
		return err
	}
	t.seen.CancelledBefore = map[int]bool{}
	for at := range t.request.Messages {
		if t.seen.Intakes[at] == Fresh && slices.Contains(pending, t.request.Messages[at].ID) {
			t.seen.CancelledBefore[at] = true
		}
	}
	return nil
}

// carriedOut returns the ids of the cancelled messages, and of those that the decisions end as
// cancelled. The others have ended for another reason: they are dead or rejected.
func (t *Tx) carriedOut() (cancelled, ended []string) {
	ended = []string{}
	for at := range t.seen.CancelledBefore {
		id := t.seen.Messages[at].ID
		cancelled = append(cancelled, id)
		if d := &t.decisions.Each[at]; d.State == Failed && d.Reason == ReasonCancelled {
			ended = append(ended, id)
		}
	}
	return cancelled, ended
}
