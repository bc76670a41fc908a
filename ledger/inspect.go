package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/migrations"
	"dispatcher/ledger/primary"
)

// LeastServer is the oldest supported PostgreSQL, as server_version_num.
const LeastServer = 150000

// FaultyServer is PostgreSQL 18.0, as server_version_num. It loses an update of a counter when two
// sessions write it at once, and crashes in other statements. 18.1 does neither.
const FaultyServer = 180000

// Condition is what Inspect finds out about a database.
type Condition struct {
	// Server is server_version_num, such as 170002 for 17.2.
	Server int
	// Schema is the version of the ledger's schema, 0 when there is none. Latest is the version that
	// Migrate brings it to.
	Schema, Latest int
	// Conflict is a migrations.ConflictError when another build made the schema, else nil.
	Conflict error
	// Ahead is the database's clock minus this process's, to within half of RoundTrip.
	Ahead     time.Duration
	RoundTrip time.Duration
	// Durability is what sessions with the same address have.
	Durability Durability
	Login      Login
	Snapshot   Snapshot
}

// Snapshot is the oldest snapshot that a session of the database keeps. Old versions of rows that
// it may see stay, and each claim passes those of its counters. It is zero when there is none.
type Snapshot struct {
	PID          int // of the session, as pg_terminate_backend takes it
	Login        string
	Transactions int // how many have begun since
}

// readSnapshot reads the age in transactions: what a session is and when its transaction began is
// hidden from other logins.
func (c *Condition) readSnapshot(ctx context.Context, conn *pgx.Conn) error {
	err := conn.QueryRow(ctx, `
		select pid, usename, age(backend_xmin) from pg_stat_activity
		where backend_xmin is not null and pid <> pg_backend_pid()
		  and datname = current_database() and usename is not null -- autovacuum has none
		order by 3 desc limit 1`).
		Scan(&c.Snapshot.PID, &c.Snapshot.Login, &c.Snapshot.Transactions)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// Login says which rights a login has beyond those that the dispatcher needs.
type Login struct {
	Name string
	// Superuser may do everything. Owner has the rights of the owner of schema dispatcher, and so may
	// change history.
	Superuser, Owner bool
}

// readLogin reads the role whose rights the session has.
func (c *Condition) readLogin(ctx context.Context, conn *pgx.Conn) error {
	return conn.QueryRow(ctx, `
		select rolname, rolsuper, exists (select from pg_namespace
		  where nspname = 'dispatcher' and pg_has_role(nspowner, 'usage'))
		from pg_roles where rolname = current_user`).
		Scan(&c.Login.Name, &c.Login.Superuser, &c.Login.Owner)
}

// Inspect reads the condition of the database at url, and changes nothing.
func Inspect(ctx context.Context, url string) (Condition, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return Condition{}, errAddress
	}
	new(primary.Guard).Begin(ctx, &config.Config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return Condition{}, wrap("inspect database", err)
	}
	defer closeConn(conn)
	c := Condition{Latest: migrations.Latest()}
	if err := c.readVersions(ctx, conn); err != nil {
		return Condition{}, wrap("inspect database", err)
	}
	if c.Durability, err = readDurability(ctx, conn); err != nil {
		return Condition{}, wrap("inspect database", err)
	}
	if err := c.readLogin(ctx, conn); err != nil {
		return Condition{}, wrap("inspect database", err)
	}
	if err := c.readSnapshot(ctx, conn); err != nil {
		return Condition{}, wrap("inspect database", err)
	}
	return c, wrap("inspect database", c.readClock(ctx, conn))
}

// Durability reads how durable the commits of claims and settlements are.
func (l *Ledger) Durability(ctx context.Context) (Durability, error) {
	d, err := readDurability(ctx, l.hot)
	return d, wrap("read durability", err)
}

// readDurability reads the settings of the session. synchronous_commit may be set for the role, the
// database or in the address.
func readDurability(ctx context.Context, from querier) (d Durability, err error) {
	err = from.QueryRow(ctx, `
		select current_setting('synchronous_commit'), current_setting('fsync'),
		  current_setting('full_page_writes'),
		  current_setting('synchronous_standby_names'), (select count(*)
		  from pg_stat_replication)`).
		Scan(&d.SynchronousCommit, &d.Fsync, &d.FullPageWrites, &d.SynchronousStandbyNames,
			&d.Followers)
	return d, err
}

func (c *Condition) readVersions(ctx context.Context, conn *pgx.Conn) (err error) {
	if err := conn.QueryRow(ctx, `select current_setting('server_version_num')::int`).
		Scan(&c.Server); err != nil {
		return err
	}
	c.Schema, err = migrations.Check(ctx, conn)
	if conflict, ok := errors.AsType[*migrations.ConflictError](err); ok {
		c.Conflict, err = conflict, nil
	}
	return err
}

// readClock compares the database's clock with the middle of the round trip.
func (c *Condition) readClock(ctx context.Context, conn *pgx.Conn) error {
	var there time.Time
	before := time.Now()
	if err := conn.QueryRow(ctx, `select clock_timestamp()`).Scan(&there); err != nil {
		return fmt.Errorf("read clock: %w", err)
	}
	c.RoundTrip = time.Since(before)
	c.Ahead = there.Sub(before.Add(c.RoundTrip / 2))
	return nil
}

// Durability holds the server settings that decide which commits survive a crash. An attempt that
// was sent and whose row is lost is sent again, and its slots are given away a second time.
type Durability struct {
	// These have the values that the server shows: on, off, local and so on.
	SynchronousCommit, Fsync, FullPageWrites string
	// SynchronousStandbyNames are the standbys that a commit waits for. When it is empty,
	// synchronous_commit local is the same as on.
	SynchronousStandbyNames string
	// Followers is how many standbys and other receivers of the WAL are connected now.
	Followers int
}

// Unwaited is how many followers there are when a commit waits for none of them, else 0. A follower
// that takes over then lacks the last commits. The server does not know whether a follower may take
// over.
func (d *Durability) Unwaited() int {
	if d.SynchronousStandbyNames != "" {
		return 0 // a follower that is not named must not take over
	}
	return d.Followers
}

// Weaknesses are the settings under which commits that were reported as done may be lost; none when
// a commit is on the disk of this server before it is reported.
func (d *Durability) Weaknesses() []Weakness {
	const last = "what was committed last: counters, and attempts that went out already"
	var out []Weakness
	if d.Fsync == "off" {
		out = append(out, Weakness{
			"fsync", d.Fsync, true, "a crash of the machine may cost the whole database",
		})
	}
	if d.FullPageWrites == "off" {
		out = append(out, Weakness{
			"full_page_writes", d.FullPageWrites, true,
			"a crash of the machine may leave pages that are half written",
		})
	}
	switch {
	case d.SynchronousCommit == "off":
		out = append(out, Weakness{
			"synchronous_commit", d.SynchronousCommit, false,
			"a crash of the server costs " + last,
		})
	case d.SynchronousCommit == "local" && d.SynchronousStandbyNames != "":
		out = append(out, Weakness{
			"synchronous_commit", d.SynchronousCommit, false,
			"a standby that takes over lacks " + last,
		})
	}
	return out
}

// Weakness is one setting under which commits may be lost.
type Weakness struct {
	Setting, Value string
	ServerOnly     bool   // it can be set only for the whole server, not for a database or a role
	Cost           string // what may be lost, as a clause without capital letter and full stop
}

// ChannelLock is a channel whose row is locked by a session that is not a dispatcher's.
type ChannelLock struct {
	Channel string
	PID     int // of the session, as pg_terminate_backend takes it
}

// EndFrozen ends the sessions of dispatchers that have waited for the rest of a COPY or a batch in
// a transaction that began longer ago than after, and returns how many. Such a session holds the
// locks of channels, and its process is frozen. It sees the sessions of its own login.
func (l *Ledger) EndFrozen(ctx context.Context, after time.Duration) (ended int, err error) {
	err = l.reports.QueryRow(ctx, `
		select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity
		where datname = current_database() and application_name = 'dispatcher'
		  and state = 'active' and wait_event = 'ClientRead' and usename = session_user
		  and xact_start < clock_timestamp() - $1::interval`, after).Scan(&ended)
	return ended, wrap("end frozen sessions", err)
}

// ChannelLocks lists the channel locks, by channel. It waits for no lock.
//
// The xmax of a row is the transaction that locked or changed it last, and a transaction holds a
// lock on its own id until it ends. Sessions of dispatchers are left out: they lock rows only for
// the length of a claim. If one stops in the middle, it is ended: see hotSettings.
func (l *Ledger) ChannelLocks(ctx context.Context) ([]ChannelLock, error) {
	locks, err := rows(ctx, l.db, pgx.RowToStructByPos[ChannelLock], `
		select c.channel, k.pid from dispatcher.channels c
		join pg_locks k on k.locktype = 'transactionid' and k.transactionid = c.xmax
		  and k.mode = 'ExclusiveLock' and k.granted
		where not exists (select from pg_stat_activity s where s.pid = k.pid
		  and s.application_name = 'dispatcher')
		order by c.channel`)
	return locks, wrap("look for locked channels", err)
}
