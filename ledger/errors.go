package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNotRegistered is returned by Lock before Register, and after another instance has taken this
// one for dead and removed its row. The next Beat writes the row again.
var ErrNotRegistered = errors.New("this instance has no row in the ledger")

// ErrSilent is returned by Lock when the last heartbeat of this instance is so old that a recovery
// would not find attempts claimed now. The next Beat ends this.
var ErrSilent = errors.New("this instance has not sent a heartbeat for too long")

// MissingChannelsError is returned by Commit when a named channel has no row: it was removed from
// the routing, or never applied. Commit reports it only after the caller has seen the routing
// version, so that a caller with a stale routing can react to that first.
type MissingChannelsError struct{ Names []string }

// Error names the channels.
func (e *MissingChannelsError) Error() string {
	return "channels without a row in the ledger: " + strings.Join(e.Names, ", ")
}

// MissingCursorsError is returned by Commit when a named route has no cursor: it was removed from
// the routing, or never applied. Commit reports it as late as a MissingChannelsError.
type MissingCursorsError struct{ Routes []string }

// Error names the routes.
func (e *MissingCursorsError) Error() string {
	return "routes without a cursor in the ledger: " + strings.Join(e.Routes, ", ")
}

// DecisionError is returned by Commit when the decisions do not fit what was shown. It is a bug in
// the caller. Nothing was written.
type DecisionError struct{ Problem string }

// Error describes the problem without naming a message.
func (e *DecisionError) Error() string { return "decision refused: " + e.Problem }

func refuse(format string, args ...any) error {
	return &DecisionError{Problem: fmt.Sprintf(format, args...)}
}

// wrap adds the operation to an error from the database; nil stays nil.
func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, clean(err))
}

// clean removes from a server's error the fields that may quote a row: Detail shows a failing row,
// Where a failing function's statement. The message, the code and the name of the constraint are
// kept.
func clean(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		pg.Detail, pg.Where, pg.InternalQuery, pg.Hint = "", "", "", ""
	}
	return err
}

// Unavailable reports whether an error means that the database cannot answer now and the same call
// may succeed later: the connection was lost or refused, the server is starting up, shutting down
// or out of connections or space, or there was a timeout or a deadlock. Any other error is a bug or
// a wrong configuration, and repeating the call does not help.
func Unavailable(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, ErrNotRegistered) || errors.Is(err, ErrSilent) {
		return true // until the next heartbeat
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return passing(pg.Code)
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errConnection) ||
		pgconn.SafeToRetry(err)
}

// RolledBack reports whether the error of a call that writes in one transaction shows that nothing
// was committed: the server refused a statement or the commit, or it was never asked to commit. A
// connection that is lost, and a session that the server ends, prove nothing. Nor does a connection
// that this process closed: it does so when a commit's wait for the standby was cancelled. Calls
// that end with queueEarly have committed before the last statement, so their errors prove nothing.
func RolledBack(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.SeverityUnlocalized == "ERROR" &&
			pg.Code != "40003" // statement_completion_unknown
	}
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	return connect || errors.Is(err, pgx.ErrTxCommitRollback) ||
		pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed)
}

// errConnection marks a connection error that has no type of its own.
var errConnection = errors.New("connection to the database lost")

// passing reports whether an error code of PostgreSQL (appendix A of its manual) stands for a
// condition that ends by itself.
func passing(code string) bool {
	switch code {
	case "25P03", // idle_in_transaction_session_timeout
		"40001", // serialization_failure
		"40P01", // deadlock_detected
		"55P03", // lock_not_available
		"57014", // query_canceled, by statement_timeout
		"25006": // read_only_sql_transaction, while a standby takes over
		return true
	}
	for _, class := range []string{
		"08",  // connection exception
		"53",  // insufficient resources
		"57P", // shutdown, crash, starting up, idle session
		"58",  // system error
	} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}

// Unstorable reports whether an error means that a value does not fit its column or breaks a
// constraint: without that row the others could be stored.
func Unstorable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(pg.Code) < 2 {
		return false
	}
	switch pg.Code[:2] {
	case "22", "23", "54": // data exception, integrity constraint violation, program limit exceeded
		return true
	}
	return false
}

// isDuplicate reports whether a plain insert failed because the row existed already.
func isDuplicate(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "23505"
}

// isStored reports whether insertSettled failed because an attempt has a row, or a claim is not in
// open_claims.
func isStored(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(pg.TableName, "attempts") &&
		(pg.Code == "23505" || pg.Code == "23502" && pg.ColumnName == "message_seq")
}
