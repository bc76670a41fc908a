package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errEnded is returned for a Commit after Commit or Rollback, which is a bug of the caller.
var errEnded = errors.New("the claim has ended before")

// Commit writes the decisions and ends the claim, in one round trip, and one more for each of three
// tables with new rows: messages, payloads, and attempts that are not first ones. When it returns
// nil, everything is durable. When it returns an error, nothing is: no row, no slot.
//
// If the connection breaks while attempts are being committed, Commit does not return until it has
// found out whether they were, even after ctx has ended; only Close cuts that short. Attempts that
// were committed without the caller knowing belong to this instance, and are recovered when it
// ends.
func (t *Tx) Commit(ctx context.Context, d Decisions) error {
	if t.conn == nil {
		return wrap("claim", errEnded)
	}
	t.decisions = d
	lost, err := t.finish(ctx)
	// The connection goes back first: when the server goes away, all connections may hang in claims,
	// and commitOutcome needs one.
	t.release()
	if lost {
		err = t.claims.commitOutcome(ctx, t, err)
	}
	if err == nil {
		t.claims.open.add(t)
	}
	return wrap("claim", err)
}

// Rollback ends the claim and undoes it. After Commit or Rollback it does nothing.
func (t *Tx) Rollback() {
	if t.conn == nil {
		return
	}
	defer t.release()
	rollback(context.Background(), t.conn)
}

// release gives the connection back. The pool closes one that is still in a transaction, which
// releases its locks.
func (t *Tx) release() {
	t.passTurn(&t.claims.turns)
	t.conn.Release()
	t.conn = nil
}

// finish commits. lost means that the connection broke meanwhile, so that it is not known whether
// the transaction was committed.
func (t *Tx) finish(ctx context.Context) (lost bool, err error) {
	if err := t.check(); err != nil {
		rollback(ctx, t.conn)
		return false, err
	}
	var commit commitTag
	err = t.write(ctx, &commit)
	switch {
	case err == nil:
		return false, commit.err()
	case commit.err() != nil && RolledBack(err):
		rollback(ctx, t.conn)
		return false, err
	}
	return true, err
}

// check returns an error for decisions that do not fit what was shown, and for missing rows.
// Missing rows are reported only here: a caller that sees a newer routing version first rolls back
// and reads the routing.
func (t *Tx) check() error {
	if len(t.missingChannels) > 0 {
		return &MissingChannelsError{Names: t.missingChannels}
	}
	if len(t.missingCursors) > 0 {
		return &MissingCursorsError{Routes: t.missingCursors}
	}
	return check(&t.seen, &t.was, &t.decisions)
}

// write sends all changes, the commit, and what waits until it is durable. It sets how the commit
// was answered, also with an error after that.
func (t *Tx) write(ctx context.Context, commit *commitTag) error {
	batch := &pgx.Batch{}
	fresh, attempts, changes := split(&t.seen, t.decisions.Each)
	t.attempts = attempts
	first, later := t.firstAttempts()
	t.first = first
	if err := t.copyNew(ctx, fresh, later); err != nil {
		return err
	}
	if len(first) > 0 {
		batch.Queue(insertOpenClaim, t.openClaimArrays()...)
	}
	t.eachDay(changes, func(day Day, some []int) {
		batch.Queue(updateMessages.on(day), changeArrays(&t.seen, t.decisions.Each, some)...)
	})
	t.eachDay(t.freeTickets(), func(day Day, some []int) {
		batch.Queue(freeAttempts.on(day), ticketArrays(&t.seen, some)...)
	})
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
	if cursors := moved(t.was.cursors, t.seen.Cursors); len(cursors) > 0 {
		batch.Queue(updateCursors, cursorArrays(cursors)...)
	}
	if cancelled, ended := t.carriedOut(); len(cancelled) > 0 {
		batch.Queue(carryOut, cancelled, ended)
	}
	for _, box := range pack(t.decisions.Notices) {
		batch.Queue(insertOutbox, box.kind, box.keys, box.values, box.headers)
	}
	commit.queueEarly(batch)
	return t.conn.SendBatch(ctx, batch).Close()
}

// eachDay calls do with the messages of each day. which must ascend by seq.
func (t *Tx) eachDay(which []int, do func(day Day, some []int)) {
	eachDay(len(which), func(i int) int64 { return t.seen.Messages[which[i]].Seq },
		func(day Day, from, to int) { do(day, which[from:to]) })
}

// rollbackTimeout bounds a rollback. After it the connection is closed, which also rolls back.
const rollbackTimeout = 2 * time.Second

// rollback ends the transaction even when ctx has ended, so that its locks are released.
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

// freeTickets lists the attempts that lose the slot of their ticket. Either the next attempt of the
// message uses the slot, and takes no other; or the message takes a new slot or is not sent again.
// In the second case freeTickets lowers the active count of the channel. If the claim has not
// locked that channel, the attempt is not listed, and keeps the slot until its time is over.
func (t *Tx) freeTickets() (which []int) {
	for i := range t.seen.Messages {
		m, d := &t.seen.Messages[i], &t.decisions.Each[i]
		if m.Ticket == nil || d.State == "" || d.State == Waiting {
			continue
		}
		if d.State != Sending || d.Attempt.Ticket == nil {
			at := slices.IndexFunc(t.seen.Channels, func(c ChannelState) bool {
				return c.Name == m.Pinned
			})
			if at < 0 {
				continue
			}
			t.seen.Channels[at].Gate.Active.Count--
		}
		which = append(which, i)
	}
	slices.SortFunc(which, func(a, b int) int {
		return cmp.Compare(t.seen.Messages[a].Seq, t.seen.Messages[b].Seq)
	})
	return which
}

// Pauses of commitOutcome between two queries.
const (
	firstCommitPause = 10 * time.Millisecond
	lastCommitPause  = time.Second
)

// ErrOutcomeUnknown is returned by Commit when Close has ended its search for what became of a
// commit whose answer was lost.
var ErrOutcomeUnknown = errors.New("nobody could tell whether the transaction was committed")

// commitOutcome finds out whether a claim was committed when the answer to its commit was lost. It
// returns nil if so. If the claim was rolled back, or this cannot be found out, it returns an error
// for which Unavailable is true.
//
// A claim without attempts needs no such query. The caller can claim again: stored messages are
// then found as duplicates, and the notices are in the outbox.
func (s *Claims) commitOutcome(ctx context.Context, t *Tx, lost error) error {
	if len(t.attempts) == 0 {
		return fmt.Errorf("%w: %w", errConnection, lost)
	}
	// The caller's deadline does not apply here: committed attempts that nobody sends would be worse
	// than a long claim. Nothing can be sent while the database is away anyway.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	for pause := firstCommitPause; ; pause = min(2*pause, lastCommitPause) {
		committed, err := s.committed(ctx, t)
		switch {
		case err == nil && committed:
			return nil
		case err == nil:
			return fmt.Errorf("%w: rolled back: %w", errConnection, lost)
		}
		// It is still in progress, or the database is away.
		if !Pause(ctx, pause) {
			return fmt.Errorf("%w: %w: %w", errConnection, ErrOutcomeUnknown, lost)
		}
	}
}

var errInProgress = errors.New("transaction in progress")

// committed reports whether the claim was committed. It does not wait: while the transaction is in
// progress it returns errInProgress.
//
// It looks for the first attempt of the claim, see selectCommitted. It does not ask for the status
// of the transaction's id, because a crash can lose the id of a transaction that never reached the
// disk, and the server then assigns the same id to another one.
func (s *Claims) committed(ctx context.Context, t *Tx) (yes bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	var running bool
	err = conn.QueryRow(ctx, selectRunning, strconv.FormatInt(t.xid, 10)).Scan(&running)
	if err != nil {
		return false, err
	}
	if running {
		return false, errInProgress
	}
	first := t.attempts[0]
	if len(t.first) > 0 {
		first = t.first[0] // the key of its row in open_claims
	}
	seq := t.seen.Messages[first].Seq
	err = conn.QueryRow(ctx, selectCommitted.on(DayOf(seq)), seq,
		t.decisions.Each[first].Attempt.Number, t.instance, t.seen.Now).Scan(&yes)
	return yes, err
}

// selectRunning looks for the lock that a transaction holds on its own id until its effects are
// visible to everybody. A snapshot or pg_xact_status cannot be used: they do not distinguish an id
// that is newer than all completed ones from one that was never assigned.
const selectRunning = `
	select exists (select from pg_locks where locktype = 'transactionid'
	  and transactionid = $1::text::xid8::xid and mode = 'ExclusiveLock')`

// selectCommitted looks for an attempt, and commits a record after it, see replicationBarrier.
var selectCommitted = ofDay(`
	select exists (
	  select from dispatcher.attempts where message_seq = $1 and attempt = $2 and instance = $3
	    and claimed_at = $4
	  union all
	  select from dispatcher.open_claims where first_seq = $1 and instance = $3
	    and claimed_at = $4)
	from pg_logical_emit_message(true, 'dispatcher', '')`)

// replicationBarrier commits an empty record. Two kinds of transactions are visible before they are
// durable: those that end with queueEarly, and where commits wait for a standby, those whose wait
// was cut off. A caller that relies on what it sees, and has nothing to write itself, uses this:
// the commit returns when the disk and the standby have everything before it, and fails on a server
// that another has taken over from. Any other transaction that writes, or locks a row, does not
// need it: its own commit waits.
//
// It writes a message to the WAL that nobody reads (PostgreSQL manual, 9.28.6), and takes no lock.
const replicationBarrier = `select 1 from pg_logical_emit_message(true, 'dispatcher', '')`
