package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errEnded is a mistake of the caller: Commit after Commit or Rollback.
var errEnded = errors.New("the claim has ended before")

// Commit writes the decisions down and ends the claim, in one round trip. When it returns nil,
// everything is durable. When it returns an error, nothing is: no row, no slot.
//
// If the connection breaks while attempts are being committed, Commit stays until it has found
// out what became of them, even after ctx has ended; only Close cuts that short. Attempts that
// the caller then does not know of belong to this instance and are recovered after its end.
func (t *Tx) Commit(ctx context.Context, d Decisions) error {
	if t.conn == nil {
		return wrap("claim", errEnded)
	}
	t.decisions = d
	lost, err := t.finish(ctx)
	// The connection goes back first: when the server went away, all of them hang in claims, and
	// commitOutcome needs one.
	t.release()
	if lost {
		err = t.claims.commitOutcome(ctx, t, err)
	}
	return wrap("claim", err)
}

// Rollback ends the claim and leaves nothing behind. After Commit, or after another Rollback, it
// does nothing.
func (t *Tx) Rollback() {
	if t.conn == nil {
		return
	}
	defer t.release()
	rollback(context.Background(), t.conn)
}

// release gives the connection back. One in mid-transaction is cut by the pool, so the locks go
// with it.
func (t *Tx) release() {
	t.passTurn(&t.claims.turns)
	t.conn.Release()
	t.conn = nil
}

// finish commits. lost means that the connection broke meanwhile, so that nobody knows yet
// whether the transaction was committed.
func (t *Tx) finish(ctx context.Context) (lost bool, err error) {
	if err := t.check(); err != nil {
		rollback(ctx, t.conn)
		return false, err
	}
	tag, err := t.write(ctx)
	switch {
	case err == nil && tag == "COMMIT":
		return false, nil
	case err == nil:
		// PostgreSQL answers COMMIT with ROLLBACK when the transaction had failed.
		return false, fmt.Errorf("commit was answered with %s", tag)
	case certainlyUndone(err):
		rollback(ctx, t.conn)
		return false, err
	}
	return true, err
}

// check refuses decisions that do not fit what was shown. Rows that are missing are an error only
// now: a caller that sees another routing version than its own rolls back and reads the routing.
func (t *Tx) check() error {
	if len(t.missing) > 0 {
		return &MissingChannelsError{Names: t.missing}
	}
	if len(t.unturned) > 0 {
		return &MissingCursorsError{Routes: t.unturned}
	}
	return check(&t.seen, &t.was, &t.decisions)
}

// write is the second round trip. It returns the command tag that commit was answered with.
func (t *Tx) write(ctx context.Context) (tag string, err error) {
	batch := &pgx.Batch{}
	attempts, changes := split(&t.seen, t.decisions.Each, len(t.request.Messages))
	t.attempts = attempts
	if len(attempts) > 0 {
		batch.Queue(insertAttempts, attemptArrays(&t.seen, t.decisions.Each, attempts, t.seen.Now, t.instance)...)
	}
	if len(changes) > 0 {
		batch.Queue(updateMessages, changeArrays(&t.seen, t.decisions.Each, changes)...)
	}
	if seqs, details := t.details(); len(seqs) > 0 {
		batch.Queue(updateDetails, seqs, details)
	}
	if seqs, numbers := t.freeTickets(); len(seqs) > 0 {
		batch.Queue(freeAttempts, seqs, numbers)
	}
	d := differ(&t.was, &t.seen)
	if len(d.changed) > 0 {
		batch.Queue(updateLimits, counterArrays(d.changed)...)
	}
	if len(d.left) > 0 {
		batch.Queue(insertHistory, counterArrays(d.left)...)
	}
	if len(d.channels) > 0 {
		batch.Queue(updateChannels, channelArrays(d.channels)...)
	}
	if cursors := moved(t.was.turns, t.seen.Cursors); len(cursors) > 0 {
		batch.Queue(updateCursors, cursorArrays(cursors)...)
	}
	for _, box := range pack(t.decisions.Notices) {
		batch.Queue(insertOutbox, box.kind, box.keys, box.values, box.headers)
	}
	if slices.Contains(t.seen.Intakes, Duplicate) {
		batch.Queue(replicationBarrier) // the caller will rely on it that they are stored
	}
	batch.Queue("commit").Exec(func(ct pgconn.CommandTag) error {
		tag = ct.String()
		return nil
	})
	err = t.conn.SendBatch(ctx, batch).Close() // before what it reads is returned
	return tag, err
}

// details are why new messages are dead.
func (t *Tx) details() (seqs []int64, details []string) {
	for i := range t.request.Messages {
		if m := &t.seen.Messages[i]; m.Detail != "" && t.seen.Intakes[i] == Fresh {
			seqs, details = append(seqs, m.Seq), append(details, storable(m.Detail))
		}
	}
	return seqs, details
}

// rollbackTimeout bounds a rollback; after it the connection is cut, which does the same.
const rollbackTimeout = 2 * time.Second

// rollback ends the transaction even when ctx has ended, so that no lock outlives its holder.
func rollback(ctx context.Context, pooled *pgxpool.Conn) {
	conn := pooled.Conn()
	if conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "rollback"); err != nil {
		closeConn(conn)
	}
}
