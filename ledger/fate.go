package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// certainlyUndone reports whether the server itself said that the transaction failed.
// FATAL ends a session and may follow a commit that was made.
func certainlyUndone(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Severity == "ERROR"
}

// fatePatience is how long fateOf goes on after its caller's context has ended: a
// claim that was committed and is not sent would have to be recovered as Unknown.
const fatePatience = 5 * time.Second

// Pauses of fateOf between two questions.
const (
	firstFatePause = 10 * time.Millisecond
	lastFatePause  = time.Second
)

// fateOf finds out whether a transaction was committed whose answer was lost. It
// returns nil if so, and an error that is Unavailable if it was rolled back or
// nobody can tell.
func (l *Ledger) fateOf(ctx context.Context, xid int64, lost error) error {
	ctx, cancel := lingering(ctx, fatePatience)
	defer cancel()
	pause := firstFatePause
	for {
		switch status, err := l.transactionStatus(ctx, xid); {
		case err == nil && status == "committed":
			return nil
		case err == nil && status == "aborted":
			return fmt.Errorf("%w: rolled back: %w", errConnection, lost)
		}
		timer := time.NewTimer(pause) // in progress, or the database is away
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: nobody could tell whether the transaction was committed: %w", errConnection, lost)
		}
		pause = min(2*pause, lastFatePause)
	}
}

// transactionStatus is in progress, committed or aborted. PostgreSQL remembers it over
// restarts for far longer than fateOf asks.
func (l *Ledger) transactionStatus(ctx context.Context, xid int64) (status string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err = l.hot.QueryRow(ctx, `select coalesce(pg_xact_status($1::text::xid8), '')`, fmt.Sprint(xid)).Scan(&status)
	return status, err
}

// lingering is a context that ends a while after its parent.
func lingering(parent context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}
