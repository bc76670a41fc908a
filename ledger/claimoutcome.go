package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

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
			return fmt.Errorf("%w: nobody could tell whether the transaction was committed: %w", errConnection, lost)
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
	err = conn.QueryRow(ctx, selectCommitted, t.seen.Messages[first].Seq, t.decisions.Each[first].Attempt.Number, t.instance, t.seen.Now).Scan(&yes)
	return yes, err
}

// selectRunning uses the lock that a transaction has on its own number until everybody can see
// what it did. Neither a snapshot nor pg_xact_status would do: to them a number that is newer than
// all completed ones may as well never have been given.
const selectRunning = `
	select exists (select from pg_locks where locktype = 'transactionid' and transactionid = $1::text::xid8::xid and mode = 'ExclusiveLock')`

// selectCommitted looks for an attempt, and commits something after it, see replicationBarrier.
const selectCommitted = `
	select exists (
	  select from dispatcher.attempts where message_seq = $1 and attempt = $2 and instance = $3
	    and claimed_at = $4)
	from ` + barrierRecord

// replicationBarrier commits something that changes nothing. Where commits wait for a standby, one
// whose wait was cut off is seen on its server although the standby lacks it. Whoever relies on
// what it sees there, and has nothing to write, confirms it: this commit waits in the other's
// stead, and has no answer on a server that another has taken over from. A transaction that writes,
// or that locks a row, need not do this: its own commit waits.
const replicationBarrier = `select 1 from ` + barrierRecord

// vouching is a record in the server's log that nobody reads (PostgreSQL manual, 9.28.6). It takes
// no lock.
const barrierRecord = `pg_logical_emit_message(true, 'dispatcher', '')`
