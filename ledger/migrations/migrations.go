// Package migrations holds the schema of the ledger and brings a database up to date.
//
// Migrations only add: the previous release of the dispatcher keeps working on the
// new schema, so that instances can be replaced one by one. Columns and views are
// removed a release later.
package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/ledger/primary"
)

// Files are the migrations of this build.
//
//go:embed *.sql
var Files embed.FS

// lock is the advisory lock that makes concurrent starts wait for each other. The number is
// arbitrary.
const lock int64 = 0x6c65646765720001

// errSecret replaces every error about an address, because its text may quote the password.
var errSecret = errors.New(
	"DISPATCHER_POSTGRES_URL is neither a valid postgres:// URL nor a valid key=value string")

// Migrate brings the schema of the database at url up to date. It is idempotent, safe when several
// processes start at once, and leaves a newer schema as it is. When migrations of another build
// made the schema, it changes nothing and returns a ConflictError.
func Migrate(ctx context.Context, url string) error { return migrate(ctx, url, embedded()) }

func migrate(ctx context.Context, url string, all []migration) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return errSecret
	}
	new(primary.Guard).Begin(ctx, &config.Config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	//nolint:errcheck // The lock ends with the session in any case.
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1)`, lock); err != nil {
		return fmt.Errorf("migrate: lock: %w", err)
	}
	return apply(ctx, conn, all)
}

// migration is one file. It brings the schema from the version before to its own.
type migration struct {
	version int
	name    string
	sql     string
}

// read returns the migrations in their order. The file names begin with the versions, which count
// from 1 without a gap.
func read(from fs.FS) ([]migration, error) {
	names, err := fs.Glob(from, "*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	all := make([]migration, len(names))
	for i, name := range names {
		prefix := fmt.Sprintf("%03d_", i+1)
		if !strings.HasPrefix(name, prefix) {
			return nil, fmt.Errorf("%s stands where %s… is expected", name, prefix)
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, err
		}
		all[i] = migration{version: i + 1, name: name, sql: string(content)}
	}
	return all, nil
}

// apply runs the missing migrations. The caller holds the lock.
func apply(ctx context.Context, conn *pgx.Conn, all []migration) error {
	current, err := readSchema(ctx, conn)
	if err != nil {
		return fmt.Errorf("migrate: read version: %w", err)
	}
	if err := current.check(all); err != nil {
		return err
	}
	if err := current.prepare(ctx, conn); err != nil {
		return fmt.Errorf("migrate: record of migrations: %w", err)
	}
	missing := all[min(current.version, len(all)):]
	if len(missing) > 0 {
		if _, err := conn.Exec(ctx, becomeOwner); err != nil {
			return fmt.Errorf("migrate: take the rights of the schema's owner: %w", err)
		}
	}
	for _, m := range missing {
		if err := m.carryOutInTime(ctx, conn); err != nil {
			return fmt.Errorf("migrate from version %d: %w", m.version-1, err)
		}
	}
	return nil
}

const (
	// lockTimeout bounds a migration's wait for a lock, because claims queue behind it. It is longer
	// than the default of deadlock_timeout: after that PostgreSQL cancels an autovacuum that is in the
	// way.
	lockTimeout = 1200 * time.Millisecond
	// lockPause is the pause between two tries, in which claims go on.
	lockPause = 500 * time.Millisecond
	// longestLockWait is for how long a migration is tried.
	longestLockWait = 3 * time.Minute
)

// carryOutInTime tries again while a transaction of another session is in the way.
func (m *migration) carryOutInTime(ctx context.Context, conn *pgx.Conn) error {
	var inUse error
	var open []string
	for end := time.Now().Add(longestLockWait); ; {
		err := m.carryOut(ctx, conn)
		pg, ok := errors.AsType[*pgconn.PgError](err)
		switch {
		case ctx.Err() != nil && inUse != nil:
			return inUse
		case !ok || pg.Code != "55P03" && pg.Code != "40P01":
			return err
		}
		var by string
		if err := conn.QueryRow(ctx, users, open).Scan(&open, &by); err != nil {
			return err
		}
		if inUse = err; by != "" {
			inUse = fmt.Errorf("%w; meanwhile the ledger was in use by %s", err, by)
		}
		if time.Now().After(end) || !pause(ctx, lockPause) {
			return inUse
		}
	}
}

// pause waits for d, and returns false as soon as ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// users lists the transactions of other sessions that use tables of the ledger, and names the
// sessions of those that did so before, $1. Their times are not shown to every user.
const users = `
	select coalesce(array_agg(u.tx), '{}'), coalesce(string_agg(
	  format('session %s of %s (%s)', u.pid, a.usename, a.application_name), ', ' order by u.pid)
	  filter (where u.tx = any($1)), '')
	from (
	  select distinct l.virtualtransaction as tx, l.pid
	  from pg_locks l join pg_class c on c.oid = l.relation
	  join pg_namespace n on n.oid = c.relnamespace
	  join pg_database d on d.oid = l.database and d.datname = current_database()
	  where l.granted and l.pid <> pg_backend_pid() and n.nspname in ('dispatcher', 'audit', 'facts')
	) u left join pg_stat_activity a on a.pid = u.pid`

// becomeOwner switches to the owner of the schema, if this login is a member of that role, so that
// the owner also owns what a migration creates.
const becomeOwner = `
	select set_config('role', r.rolname, false)
	from pg_namespace n join pg_roles r on r.oid = n.nspowner
	where n.nspname = 'dispatcher' and r.rolname <> current_user
	  and pg_has_role(r.oid, 'member')`

// carryOut changes the schema and its version in one transaction.
func (m *migration) carryOut(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf(`set local lock_timeout = %d`,
			lockTimeout.Milliseconds())); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, m.sql); err != nil {
			return m.at(err)
		}
		if _, err := tx.Exec(ctx, `delete from dispatcher.schema_version`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into dispatcher.schema_version (version) values ($1)`,
			m.version); err != nil {
			return err
		}
		_, err := tx.Exec(ctx,
			`insert into dispatcher.schema_migrations (version, name, checksum)
				values ($1, $2, $3)`,
			m.version, m.name, m.checksum())
		return err
	})
}

// at adds the file to an error, and the line if PostgreSQL reports a position.
func (m *migration) at(err error) error {
	var said *pgconn.PgError
	if !errors.As(err, &said) || said.Position == 0 {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	text := []rune(m.sql)
	before := text[:min(int(said.Position-1), len(text))] // PostgreSQL counts characters, from 1
	return fmt.Errorf("%s, line %d: %w", m.name, 1+strings.Count(string(before), "\n"), err)
}

// Latest is the version that Migrate brings a schema to.
func Latest() int { return len(embedded()) }

// File returns the text of a migration of this build and its checksum, as they are stored with the
// schema; empty if there is no such file.
func File(name string) (text, checksum string) {
	for _, m := range embedded() {
		if m.name == name {
			return m.sql, m.checksum()
		}
	}
	return "", ""
}

// embedded returns the migrations of this release. They are read once: an audit asks for most of
// them, by their names.
var embedded = sync.OnceValue(func() []migration {
	all, err := read(Files)
	if err != nil {
		panic("migrations: " + err.Error()) // the files are compiled in; a test reads them
	}
	return all
})
