package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNotRegistered is returned by Lock before Register, and after another instance
// has taken this one for dead and forgotten it. The next Beat corrects the latter.
var ErrNotRegistered = errors.New("this instance has no row in the ledger")

// ErrSilent is returned by Lock when this instance has not sent a heart-beat for so
// long that attempts claimed now would not be found by a recovery. The next Beat corrects it.
var ErrSilent = errors.New("this instance has not sent a heart-beat for too long")

// MissingChannelsError is returned by Commit when a named channel has no row: it was
// removed from the routing, or never applied. Decide, which sees the routing version, is
// asked first, so that a stale routing is reported as such.
type MissingChannelsError struct{ Names []string }

// Error names the channels.
func (e *MissingChannelsError) Error() string {
	return "channels without a row in the ledger: " + strings.Join(e.Names, ", ")
}

// MissingCursorsError is returned by Commit when a named route has no cursor: it was
// removed from the routing, or applied without it. Like MissingChannelsError, it comes
// after decide was asked.
type MissingCursorsError struct{ Routes []string }

// Error names the routes.
func (e *MissingCursorsError) Error() string {
	return "routes without a cursor in the ledger: " + strings.Join(e.Routes, ", ")
}

// DecisionError is returned by Commit when the decisions do not fit what was shown. It
// is a bug in the caller; nothing was written.
type DecisionError struct{ Problem string }

// Error describes the misfit without naming a message.
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

// clean removes from a server's error what may quote a row: a failing row is shown in Detail, a
// failing function's statement in Where. The message, the code and the name of the constraint are
// kept.
func clean(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		pg.Detail, pg.Where, pg.InternalQuery, pg.Hint = "", "", "", ""
	}
	return err
}

// Unavailable reports whether an error says that the database cannot answer now and
// the same call may succeed later: connection lost or refused, starting up, shutting
// down, out of connections or space, a timeout, a deadlock. Everything else is a bug
// or a configuration error, and repeating the call will not help.
func Unavailable(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, ErrNotRegistered) || errors.Is(err, ErrSilent) {
		return true // until the next heart-beat
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

// errConnection marks an error on a connection that carries no type of its own.
var errConnection = errors.New("connection to the database lost")

// passing lists the error classes of PostgreSQL (appendix A of its manual) that end by
// themselves.
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

// Unstorable reports whether an error says that a value does not fit its column or
// breaks a constraint: the row is at fault, and without it the others could be stored.
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

// isDuplicate reports whether a row was there already that a plain insert wanted to make.
func isDuplicate(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "23505"
}
