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

	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/config"
)

// PostgresTrouble says in one sentence why the database cannot be used and what to do. The address is
// shown without password.
func PostgresTrouble(s *config.Settings, err error) error {
	problem, fix := postgresProblem(s, err)
	return errors.New(problem + ": " + fix)
}

// postgresProblem says why the database cannot be used, and what to do.
func postgresProblem(s *config.Settings, err error) (problem, fix string) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		where := PostgresAddress(s.PostgresURL)
		if where == "" {
			return "DISPATCHER_POSTGRES_URL is neither a postgres:// URL nor a key=value string", "write for example postgres://user@host:5432/database"
		}
		return fmt.Sprintf("PostgreSQL at %s of DISPATCHER_POSTGRES_URL does not answer (%s)", where, Cause(err)), "start it or correct the address"
	}
	switch pg.Code {
	case "28P01", "28000": // invalid_password, invalid_authorization_specification
		return "PostgreSQL refuses the user or the password of DISPATCHER_POSTGRES_URL", "correct them"
	case "3D000": // invalid_catalog_name
		return "the database of DISPATCHER_POSTGRES_URL does not exist", "create it, or correct the name"
	case "3F000", "42P01", "42703", "42883": // invalid_schema_name, undefined_table, undefined_column, undefined_function
		return "the database of DISPATCHER_POSTGRES_URL lacks the ledger's schema or an update of it", `run "dispatcher migrate"`
	case "42501": // insufficient_privilege
		return fmt.Sprintf("the user of DISPATCHER_POSTGRES_URL lacks a right (%s)", pg.Message), "grant it, or use the owner of schema dispatcher"
	}
	if strings.HasPrefix(pg.Code, "57P") { // shutdown, crash, starting up
		return fmt.Sprintf("PostgreSQL is starting or stopping (%s)", pg.Message), "start it, or wait until it is up"
	}
	if pg.Code == "53300" { // too_many_connections
		return "PostgreSQL has no connection left for this process", "raise its max_connections, or lower DISPATCHER_POSTGRES_MAX_CONNS"
	}
	return fmt.Sprintf("PostgreSQL answers with an error (%s, SQLSTATE %s)", pg.Message, pg.Code), "look it up in the log of PostgreSQL"
}

// PostgresAddress is host:port of an address, without user and password.
func PostgresAddress(url string) string {
	parsed, err := pgconn.ParseConfig(url)
	if err != nil {
		return ""
	}
	return net.JoinHostPort(parsed.Host, strconv.Itoa(int(parsed.Port)))
}

// Cause names the reason of a failed connection in a few words.
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
