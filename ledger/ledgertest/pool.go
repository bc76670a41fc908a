package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// pool holds emptied databases for the next tests. Emptying one takes a few milliseconds; a clone
// takes a hundred times as long on a busy machine.
type pool struct {
	mu       sync.Mutex
	free     []*database // guarded by mu
	lasting  []*database // guarded by mu; see Lasting
	made     int         // guarded by mu
	tables   []string    // tables without rows in the template; guarded by mu
	original string      // fingerprint of the template; guarded by mu
}

// database is a database of the pool, with the connection that empties it.
type database struct {
	name string
	conn *pgx.Conn
}

// fingerprint changes with everything that a test may alter and emptying does not restore: tables,
// columns, constraints, triggers, functions, views, settings of the database, and the tables that
// the schema fills. A function or view that was replaced is a new version of its row.
const fingerprint = `
select concat_ws('/',
  (select sum(hashname(relname)::bigint * ascii(relkind::text) + relnatts) from pg_class
    where oid >= 16384 and relpersistence = 'p' and not starts_with(relname, 'pg_toast')),
  (select concat_ws('-', sum(hashname(attname)), count(*) filter (where attnotnull),
     count(*) filter (where atthasdef), count(*) filter (where attisdropped))
    from pg_attribute where attrelid >= 16384),
  (select sum(hashtext(concat(conname, convalidated))) from pg_constraint where oid >= 16384),
  (select sum(hashtext(concat(tgname, tgenabled))) from pg_trigger),
  (select sum(hashtext(concat(oid, xmin))) from pg_proc where oid >= 16384),
  (select sum(hashtext(concat(oid, xmin))) from pg_rewrite where oid >= 16384),
  (select count(*) from pg_namespace where oid >= 16384),
  (select count(*) from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
    where d.datname = current_database()),
  (select sum(hashtext(v::text)) from dispatcher.schema_version v),
  (select sum(hashtext(d::text)) from dispatcher.days d),
  (select sum(hashtext(t::text)) from dispatcher.id_turns t),
  (select sum(hashtext(m::text)) from dispatcher.schema_migrations m))`

// emptyTables are the tables of the schema without rows.
const emptyTables = `
select array_agg(format('%I.%I', schemaname, tablename) order by tablename) from pg_tables
where schemaname = 'dispatcher' and (xpath('/row/n/text()', query_to_xml(format(
  'select count(*) as n from %I.%I', schemaname, tablename), false, true, '')))[1]::text = '0'`

// endSessions terminates the sessions that a test has left, and waits until they have ended. It
// returns how many it found.
const endSessions = `
select count(pg_terminate_backend(pid, 10000)) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`

// NewSeq is an SQL expression for the number of a message that a test stores by hand: the next
// number of today.
const NewSeq = `(dispatcher.first_of(dispatcher.day_at(now())) +
	nextval('dispatcher.message_numbers'))`

// used lists the tables that have had rows: small ones are emptied by delete, and large ones by
// truncate, which is faster for them. Deleting from all tables would take most of the time.
const used = `select
	string_agg('delete from ' || t, '; ') filter (where size <= 1 << 20),
	'truncate ' || string_agg(t, ', ') filter (where size > 1 << 20) || ' cascade'
	from unnest($1::text[]) t, pg_relation_size(t) size where size > 0`

// restart sets all sequences to their start.
const restart = `
select count(setval(format('%I.%I', schemaname, sequencename), start_value, false))
from pg_sequences where last_value is not null`

// renew updates the only time that tests read from a new ledger, because the template may have been
// made hours ago.
func renew(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `update dispatcher.id_turns set since = now()`)
	return err
}

// prepare renews the template, and reads from it which tables to empty, and its fingerprint. It
// closes the databases of the day before.
func (p *pool) prepare(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // Nothing depends on a clean goodbye.
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.free {
		_ = d.close(ctx) // the server is stopped at the end
	}
	p.free = nil
	if err := renew(ctx, conn); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, emptyTables).Scan(&p.tables); err != nil {
		return err
	}
	return conn.QueryRow(ctx, fingerprint).Scan(&p.original)
}

// like returns what prepare has read.
func (p *pool) like() (tables []string, original string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tables, p.original
}

// take returns an emptied database, or the name of one that the caller has to create.
func (p *pool) take() (*database, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.free) - 1; last >= 0 {
		d := p.free[last]
		p.free = p.free[:last]
		return d, ""
	}
	return nil, p.name()
}

// name is the name of one more database. mu is held.
func (p *pool) name() string {
	p.made++
	return fmt.Sprintf("test_%d", p.made)
}

// lasts adds a database that is not returned to the pool.
func (p *pool) lasts() *database {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := &database{name: p.name()}
	p.lasting = append(p.lasting, d)
	return d
}

// give empties a database for the next test. It returns an error when that is not possible.
func (p *pool) give(ctx context.Context, d *database) error {
	err := d.connect(ctx)
	if err == nil {
		err = errors.Join(d.end(ctx), d.empty(ctx, p))
	}
	if err != nil {
		return errors.Join(err, d.close(ctx))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, d)
	return nil
}

// errAltered means that the database has to be dropped after its test.
var errAltered = errors.New("the test has altered the schema")

// end ends the sessions of a test. It repeats the statement, because a session that is ending by
// itself is still listed for a moment, and PostgreSQL cannot terminate it.
func (d *database) end(ctx context.Context) error {
	for {
		var found int
		if err := d.conn.QueryRow(ctx, endSessions).Scan(&found); err != nil || found == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// connect opens the connection that empties the database. No trigger fires on it.
func (d *database) connect(ctx context.Context) error {
	if d.conn != nil {
		return nil
	}
	conn, err := pgx.Connect(ctx, shared.server.URLOf(d.name))
	if err != nil {
		return err
	}
	d.conn = conn
	_, err = conn.Exec(ctx, `set session_replication_role = replica`)
	return err
}

// empty deletes all rows. It returns errAltered when the schema was altered.
func (d *database) empty(ctx context.Context, p *pool) error {
	var now string
	if err := d.conn.QueryRow(ctx, fingerprint).Scan(&now); err != nil {
		return err
	}
	tables, original := p.like()
	if now != original {
		return errAltered
	}
	var deletes, truncate *string
	if err := d.conn.QueryRow(ctx, used, tables).Scan(&deletes, &truncate); err != nil {
		return err
	}
	for _, sql := range []*string{truncate, deletes} {
		if sql == nil {
			continue
		}
		if _, err := d.conn.Exec(ctx, *sql); err != nil {
			return err
		}
	}
	var restarted int // Exec without arguments would plan the statement each time
	return d.conn.QueryRow(ctx, restart).Scan(&restarted)
}

// pooled is a database of the pool for one test.
func pooled(t testing.TB) string {
	t.Helper()
	template := begun(t)
	d, name := shared.pool.take()
	if d == nil {
		d = &database{name: name}
		command(t, fmt.Sprintf(`create database %s template %s strategy file_copy`, name, template))
	}
	t.Cleanup(func() {
		// t.Context has ended when cleanups run.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if shared.pool.give(ctx, d) != nil {
			command(t, fmt.Sprintf(`drop database if exists %s with (force)`, d.name))
		}
	})
	return shared.server.URLOf(d.name)
}

// Lasting returns a database for tests of one process that use it one after the other with the same
// connections, and empty it in between. When empty returns an error, a test has altered the
// database or its day is over, and it cannot be used again. It is removed with the server.
func Lasting(t testing.TB) (url string, empty func(context.Context) error) {
	t.Helper()
	template := begun(t)
	d := shared.pool.lasts()
	command(t, fmt.Sprintf(`create database %s template %s strategy file_copy`, d.name, template))
	if err := d.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return shared.server.URLOf(d.name), func(ctx context.Context) error {
		err := d.empty(ctx, &shared.pool)
		if err != nil {
			err = errors.Join(err, d.close(ctx))
		}
		return err
	}
}

func (d *database) close(ctx context.Context) error {
	if d.conn == nil {
		return nil
	}
	return d.conn.Close(ctx)
}

// close ends the connections of the pool.
func (p *pool) close(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range append(p.free, p.lasting...) {
		_ = d.close(ctx) // the server is stopped next
	}
}
