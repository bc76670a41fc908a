package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/config"
	"dispatcher/ledger"
)

// postgres is the name of the database in reports of outages.
const postgres = "PostgreSQL"

// Timing of the probe that checks the database after a failure.
const (
	pingTimeout = 3 * time.Second
	pingAgain   = 500 * time.Millisecond
)

// watchDatabase starts the probe. After each failure on the database it finds out whether
// PostgreSQL is away, and reports when it is back.
func (a *App) watchDatabase() {
	a.database = &outage.Probe{
		Log: a.outages, Reporter: "database", Timeout: pingTimeout, Again: pingAgain,
		Check: func(ctx context.Context) *outage.Report {
			err := a.ledger.Ping(ctx)
			if err == nil || errors.Is(err, context.Canceled) {
				return nil
			}
			return &outage.Report{
				What: postgres,
				Err:  err,
				Sentence: PostgresTrouble(&a.opts.Settings, err).Error() +
					"; until it is back nothing is sent, and Kafka keeps the messages",
			}
		},
	}
	a.ownLoop("database watch", a.database.Run)
}

// trouble reports a failure that is tried again. If it says that the database is not available, the
// probe reports an outage, or a fault if the database answers.
func (a *App) trouble(where string, err error) {
	if !ofDatabase(where) || !ledger.Unavailable(err) {
		r := outage.Report{What: where, Reporter: where, Err: err, Sentence: "trying again"}
		a.outages.Fault(r)
		return
	}
	if refusesWrites(err) {
		a.readiness.refused.Store(&refusal{err, time.Now()})
	}
	a.database.Suspect(outage.Report{
		What: "work of " + postgres, Reporter: where, Err: err,
		Sentence: "PostgreSQL answers, but work on it fails again and again (" + where + "): " +
			"look at its locks, its disk and its load",
	})
}

// ofDatabase reports whether a failure at that place is one of the database. Failures of closing a
// channel and of providers' callbacks are not.
func ofDatabase(where string) bool {
	return where != "close" && !strings.HasPrefix(where, "callbacks of ")
}

// PostgresTrouble says in one sentence why the database cannot be used and what to do. The address
// is shown without its password.
func PostgresTrouble(s *config.Settings, err error) error {
	problem, fix := postgresProblem(s, err)
	return errors.New(problem + ": " + fix)
}

// Codes with which PostgreSQL refuses writes.
const (
	readOnly = "25006" // read_only_sql_transaction
	diskFull = "53100" // disk_full
)

// postgresProblem returns why the database cannot be used, and what to do.
func postgresProblem(s *config.Settings, err error) (problem, fix string) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		where := PostgresAddress(s.PostgresURL)
		if where == "" {
			return "DISPATCHER_POSTGRES_URL is neither a postgres:// URL nor a key=value string",
				"write for example postgres://user@host:5432/database"
		}
		return fmt.Sprintf("PostgreSQL at %s of DISPATCHER_POSTGRES_URL does not answer (%s)",
			where, Cause(err)), "start it or correct the address"
	}
	switch pg.Code {
	case "28P01", "28000": // invalid_password, invalid_authorization_specification
		return "PostgreSQL refuses the user or the password of DISPATCHER_POSTGRES_URL",
			"correct them"
	case "3D000": // invalid_catalog_name
		return "the database of DISPATCHER_POSTGRES_URL does not exist",
			"create it, or correct the name"
	case "3F000", "42P01", "42703", "42883": // no such schema, table, column or function
		return "the database of DISPATCHER_POSTGRES_URL lacks the ledger's schema or an update of it",
			`run "dispatcher migrate"`
	case "42501": // insufficient_privilege
		return fmt.Sprintf("the user of DISPATCHER_POSTGRES_URL lacks a right (%s)", pg.Message),
			"grant it, or use a login of the role that may, see \"dispatcher migrate --roles\""
	case readOnly:
		return "PostgreSQL is read-only (" + pg.Message + "): it answers and takes no writes",
			"lead DISPATCHER_POSTGRES_URL to the primary, promote the standby, or undo " +
				"default_transaction_read_only"
	case diskFull:
		return "the disk of PostgreSQL is full (" + pg.Message + ")",
			"give it space; do not delete files of PostgreSQL"
	case "55P03", "40P01": // lock_not_available, deadlock_detected
		return fmt.Sprintf("a table of the ledger is in use (%s)", err),
			"try again, or end the transaction that uses it"
	case "53300": // too_many_connections
		return "PostgreSQL has no connection left for this process",
			"raise its max_connections, or lower DISPATCHER_POSTGRES_MAX_CONNS"
	}
	if strings.HasPrefix(pg.Code, "57P") { // shutdown, crash, starting up
		return fmt.Sprintf("PostgreSQL is starting or stopping (%s)", pg.Message),
			"start it, or wait until it is up"
	}
	return fmt.Sprintf("PostgreSQL answers with an error (%s, SQLSTATE %s)", pg.Message, pg.Code),
		"look it up in the log of PostgreSQL"
}

// PostgresAddress is the host:port of a URL, without user and password.
func PostgresAddress(url string) string {
	parsed, err := pgconn.ParseConfig(url)
	if err != nil {
		return ""
	}
	return net.JoinHostPort(parsed.Host, strconv.Itoa(int(parsed.Port)))
}

// Cause is the reason of a failed connection in a few words.
func Cause(err error) string {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &dns):
		return "unknown host " + dns.Name
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, io.EOF):
		return "the other side closed the connection"
	}
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return network.Err.Error()
	}
	return err.Error()
}
