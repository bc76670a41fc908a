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

// LeastServer is the oldest PostgreSQL that the ledger runs on, as server_version_num.
const LeastServer = 150000

// Condition is what can be told about a database before it is used.
type Condition struct {
	// Server is server_version_num, such as 170002 for 17.2.
	Server int
	// Schema is the version of the ledger's schema, 0 when there is none, and Latest the
	// one that Migrate brings it to.
	Schema, Latest int
	// Conflict is a migrations.ConflictError when another build made the schema, else nil.
	Conflict error
	// Ahead is the database's clock less this process's, to within half of RoundTrip.
	Ahead     time.Duration
	RoundTrip time.Duration
	// Durability is that of sessions which are opened like this one.
	Durability Durability
}

// Inspect looks at the database at url without changing anything.
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
	return c, wrap("inspect database", c.readClock(ctx, conn))
}

// Durability reads how durable the commits of claims and settlements are.
func (l *Ledger) Durability(ctx context.Context) (Durability, error) {
	d, err := readDurability(ctx, l.hot)
	return d, wrap("read durability", err)
}

// asker is a connection, or a pool of them.
type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readDurability asks the server. synchronous_commit may be that of the role, the database or the
// address.
func readDurability(ctx context.Context, from asker) (d Durability, err error) {
	err = from.QueryRow(ctx, `
		select current_setting('synchronous_commit'), current_setting('fsync'),
		  current_setting('full_page_writes'),
		  current_setting('synchronous_standby_names'), (select count(*) from pg_stat_replication)`).
		Scan(&d.SynchronousCommit, &d.Fsync, &d.FullPageWrites, &d.SynchronousStandbyNames, &d.Followers)
	return d, err
}

func (c *Condition) readVersions(ctx context.Context, conn *pgx.Conn) (err error) {
	if err := conn.QueryRow(ctx, `select current_setting('server_version_num')::int`).Scan(&c.Server); err != nil {
		return err
	}
	c.Schema, err = migrations.Check(ctx, conn)
	if conflict, ok := errors.AsType[*migrations.ConflictError](err); ok {
		c.Conflict, err = conflict, nil
	}
	return err
}

// readClock compares the database's clock with the middle of the time that asking took.
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
