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
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errEnded is a mistake of the caller: Commit after Commit or Rollback.
var errEnded = errors.New("the claim has ended before")

// Commit writes the decisions down and ends the claim, in one round trip and one for each of three
// tables with new rows. When it returns nil,
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

// write writes all down. It returns the command tag that commit was answered with.
func (t *Tx) write(ctx context.Context) (tag string, err error) {
	batch := &pgx.Batch{}
	fresh, attempts, changes := split(&t.seen, t.decisions.Each)
	t.attempts = attempts
	if err := t.copyNew(ctx, fresh, attempts); err != nil {
		return "", err
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

// eachDay calls do for the messages of each day among some, which ascend by seq.
func (t *Tx) eachDay(which []int, do func(day Day, some []int)) {
	eachDay(len(which), func(i int) int64 { return t.seen.Messages[which[i]].Seq },
		func(day Day, from, to int) { do(day, which[from:to]) })
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

// freeTickets takes the slots away from attempts whose ticket was shown and that do not keep
// it: it went on to the next attempt, which took no slot of its own, or the message takes a new
// slot or is not going on at all, and then the channel's count sinks, if it is among those that the
// claim has locked; else the slot is held until its time is over.
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

// certainlyUndone reports whether the server itself said that the transaction failed.
// FATAL ends a session and may follow a commit that was made.
func certainlyUndone(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Severity == "ERROR"
}

// Pauses of commitOutcome between two questions.
const (
	firstCommitPause = 10 * time.Millisecond
	lastCommitPause  = time.Second
)

// commitOutcome finds out whether a claim was committed whose answer was lost. It returns
// nil if so, and an error that is Unavailable if it was rolled back or nobody can tell.
//
// A claim without attempts needs no answer: to claim again does no harm, because what
// it stored falls out as duplicates and its notices wait in the outbox.
func (s *Claims) commitOutcome(ctx context.Context, t *Tx, lost error) error {
	if len(t.attempts) == 0 {
		return fmt.Errorf("%w: %w", errConnection, lost)
	}
	// The caller's deadline does not count here: attempts that were committed and that
	// nobody sends would be worse than a claim that takes long. Nothing can be sent
	// meanwhile anyway.
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
		timer := time.NewTimer(pause) // it is still in progress, or the database is away
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: nobody could tell whether the transaction was committed: %w",
				errConnection, lost)
		}
	}
}

var errInProgress = errors.New("transaction in progress")

// committed waits for nothing: it is an error while the transaction is in progress.
//
// Once it is not, its first attempt tells, see selectCommitted. The status that the server keeps
// for a transaction's number would not do: a crash can lose the number of a transaction that never
// reached the disk, and the next one gets it.
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
	seq := t.seen.Messages[first].Seq
	err = conn.QueryRow(ctx, selectCommitted.on(DayOf(seq)), seq,
		t.decisions.Each[first].Attempt.Number, t.instance, t.seen.Now).Scan(&yes)
	return yes, err
}

// selectRunning uses the lock that a transaction has on its own number until everybody can see
// what it did. Neither a snapshot nor pg_xact_status would do: to them a number that is newer than
// all completed ones may as well never have been given.
const selectRunning = `
	select exists (select from pg_locks where locktype = 'transactionid'
	  and transactionid = $1::text::xid8::xid and mode = 'ExclusiveLock')`

// selectCommitted looks for an attempt, and commits something after it, see replicationBarrier.
var selectCommitted = ofDay(`
	select exists (
	  select from dispatcher.attempts where message_seq = $1 and attempt = $2 and instance = $3
	    and claimed_at = $4)
	from ` + barrierRecord)

// replicationBarrier commits something that changes nothing. Where commits wait for a standby, one
// whose wait was cut off is seen on its server although the standby lacks it. Whoever relies on
// what it sees there, and has nothing to write, confirms it: this commit waits in the other's
// stead, and has no answer on a server that another has taken over from. A transaction that writes,
// or that locks a row, need not do this: its own commit waits.
const replicationBarrier = `select 1 from ` + barrierRecord

// barrierRecord is a record in the server's log that nobody reads (PostgreSQL manual, 9.28.6). It
// takes no lock.
const barrierRecord = `pg_logical_emit_message(true, 'dispatcher', '')`
