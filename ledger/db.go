package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dispatcher/ledger/primary"
)

// questionTimeout bounds a query that takes no time on a server that answers.
const questionTimeout = 5 * time.Second

// scoutInterval is how often all hosts of the address are asked which of them is the newest
// primary.
const scoutInterval = 10 * time.Second

// db is what the stores share: the pools and the settings of all connections.
type db struct {
	config Config
	hot    *pgxpool.Pool // claims and settlements
	// reports is for statements whose plan depends on the data, and for changes of the routing.
	reports  *pgxpool.Pool
	longRead chan struct{}   // holds one element while a long read uses a connection of reports
	single   *pgx.ConnConfig // for connections outside the pools
	guard    primary.Guard   // of all connections
	instance atomic.Int64    // set by Instances.Register

	calendar calendar
	open     openAttempts
	// openKnown says that all instances know open_claims. During an upgrade some do not: then a claim
	// stores a row for each attempt.
	openKnown atomic.Bool

	closing  context.Context // ended by Close
	loops    sync.WaitGroup
	timeouts timeouts
}

// timeouts are for connections without a statement timeout. TCP alone would wait much longer for a
// server that is gone.
type timeouts struct {
	roundTrip time.Duration // for an answer
	watch     time.Duration // for a notification, before the server is pinged
}

// hotSettings are the settings of the sessions of claims and settlements.
//
// Their statements join arrays to primary keys. A generic plan is always right for that, and saves
// half a millisecond of planning for each batch. Other join methods are switched off: a plan that
// uses them may be made while a table is small, and would be bad later.
//
// The timeouts protect the locks of the counters against this process: if it is frozen between two
// statements of a transaction, the server ends the session. It applies no timeout while it waits
// for the rest of a COPY: then keepalives find out that the machine is gone, and EndFrozen ends the
// session of a frozen process.
var hotSettings = map[string]string{
	"application_name":                    "dispatcher",
	"plan_cache_mode":                     "force_generic_plan",
	"enable_seqscan":                      "off",
	"enable_hashjoin":                     "off",
	"enable_mergejoin":                    "off",
	"jit":                                 "off",
	"max_parallel_workers_per_gather":     "0",   // starting workers takes longer than any statement
	"constraint_exclusion":                "off", // see reportSettings
	"statement_timeout":                   "30s",
	"idle_in_transaction_session_timeout": "3s",
	"tcp_keepalives_idle":                 "5",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "3",
	"tcp_user_timeout":                    "20s",
}

// reportSettings are the settings of all other sessions. Their statements are planned for their
// parameters, so that message numbers let the planner leave out other days.
var reportSettings = map[string]string{
	"application_name": "dispatcher reports",
	"plan_cache_mode":  "force_custom_plan",
	"jit":              "off",
	// Planning would spend half of its time on the CHECK constraints of partitions. They exclude no
	// partition that the bounds do not exclude.
	"constraint_exclusion": "off",
	// Messages and attempts are joined day by day.
	"enable_partitionwise_join": "on",
}

// Connect opens the ledger. The schema must be up to date: see Migrate.
func Connect(ctx context.Context, c Config) (*Ledger, error) {
	d := &db{
		config: c, longRead: make(chan struct{}, 1),
		timeouts: timeouts{roundTrip: 15 * time.Second, watch: 10 * time.Second},
	}
	hot, err := d.poolConfig(hotSettings)
	if err != nil {
		return nil, err
	}
	reports, err := d.poolConfig(reportSettings)
	if err != nil {
		return nil, err
	}
	reports.MaxConns = 3
	d.single = hot.ConnConfig.Copy()
	// Connections outside the pools may be idle between two polls, and wait for locks, without a
	// limit.
	d.single.RuntimeParams["statement_timeout"] = "0"
	l := newLedger(ctx, d)
	if primary.SeveralHosts(&d.single.Config) {
		d.guard.Scout(ctx, &d.single.Config)
		d.loops.Go(d.scout)
	}
	if d.hot, err = pgxpool.NewWithConfig(ctx, hot); err != nil {
		l.endLoops()
		return nil, wrap("connect to ledger", err)
	}
	if d.reports, err = pgxpool.NewWithConfig(ctx, reports); err != nil {
		l.endLoops()
		d.hot.Close()
		return nil, wrap("connect to ledger", err)
	}
	if err := d.reports.Ping(ctx); err != nil { // most commands use no other connection
		l.Close()
		return nil, wrap("connect to ledger", err)
	}
	return l, nil
}

// scout looks for a newer primary until Close. Connections to the previous primary are closed when
// they are next used.
func (d *db) scout() {
	ticker := time.NewTicker(scoutInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.guard.Scout(d.closing, &d.single.Config)
		case <-d.closing.Done():
			return
		}
	}
}

// poolConfig is the configuration of a pool whose sessions have these settings.
func (d *db) poolConfig(settings map[string]string) (*pgxpool.Config, error) {
	c := &d.config
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, errAddress
	}
	config.MaxConns = defaultMaxConns
	if c.MaxConns > 0 {
		config.MaxConns = int32(c.MaxConns)
	}
	config.ConnConfig.Tracer = c.Tracer
	maps.Copy(config.ConnConfig.RuntimeParams, settings)
	d.guard.Configure(&config.ConnConfig.Config)
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		flatArrays(conn.TypeMap())
		return nil
	}
	// bounds the check of an idle connection, so that a server that hangs is noticed sooner
	config.PingTimeout = questionTimeout
	config.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		return !d.guard.Replaced(conn.PgConn()), nil
	}
	return config, nil
}

// errAddress replaces every error about the address, because their texts may quote the password.
var errAddress = errors.New(
	"connect to ledger: DISPATCHER_POSTGRES_URL is neither a valid postgres:// URL " +
		"nor a valid key=value string")

// connect opens a connection outside the pools.
func (d *db) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, d.single.Copy())
}

// closeConn closes a connection, and waits at most a second for the server.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the session ends with the socket in any case
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// rows runs a query of a report and collects its rows.
func rows[T any](
	ctx context.Context, d *db, scan pgx.RowToFunc[T], sql string, args ...any,
) ([]T, error) {
	return queried(ctx, d.reports, scan, sql, args...)
}

// queried runs a query in a transaction, or on any other connection, and collects its rows.
func queried[T any](
	ctx context.Context, q querier, scan pgx.RowToFunc[T], sql string, args ...any,
) ([]T, error) {
	r, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	out, err := pgx.CollectRows(r, scan)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return out, nil
}

// edgeSettings make a query about the newest rows use the indexes, even when the statistics are
// older than these rows.
const edgeSettings = `
	select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	  set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)`

// atEdge runs a query about the newest rows, in one round trip. It takes no connection from claims
// and settlements.
func atEdge[T any](
	ctx context.Context, d *db, scan pgx.RowToFunc[T], sql string, args ...any,
) (out []T, err error) {
	batch := &pgx.Batch{}
	batch.Queue("begin read only")
	batch.Queue(edgeSettings)
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		out, err = pgx.CollectRows(rows, scan)
		return err
	})
	batch.Queue("commit")
	err = d.reports.SendBatch(ctx, batch).Close() // not in the return statement: it sets out
	return out, err
}

// disorder bounds how far the order of messages by seq differs from that by received_at. A
// transaction stores its start as received_at and draws seq later, and statement_timeout bounds the
// time between.
const disorder = time.Minute

// LateCommit bounds the time from the arrival of an answer or a receipt to its commit, even while
// the database is busy.
const LateCommit = time.Minute

// seekSeq finds the instants $1 and $2 in the primary key of messages by binary search: about 38
// probes of one row for each, in the days around it. Messages up to low were received before $1,
// those from high on at $2 or later, give or take disorder.
//
// There is no index on received_at, because every claim would have to maintain it.
const seekSeq = `
	with recursive search(at, low, high) as (
	  values ($1::timestamptz, $3::bigint, $4::bigint), ($2, $5, $6)
	  union all
	  select at, case when p.received_at < at then s.mid else s.low end,
	    case when p.received_at < at then s.high else s.mid end
	  from (select at, low, high, low + (high - low) / 2 as mid from search
	      where high - low > 1) s
	    left join lateral (select received_at from facts.stored_messages where seq >= s.mid
	      order by seq limit 1) p on true
	)
	select max(low) filter (where at = $1), min(high) filter (where at = $2) from search`

// seekRange returns seqs such that all messages received in [from, to) are between them.
func (d *db) seekRange(ctx context.Context, from, to time.Time) (low, high int64, err error) {
	return seekRange(ctx, d.reports, from, to)
}

func seekRange(
	ctx context.Context, q querier, from, to time.Time,
) (low, high int64, err error) {
	from, to = from.Add(-disorder), to.Add(disorder)
	first, last := DayAt(from), DayAt(to)
	err = q.QueryRow(ctx, seekSeq, from, to, (first-1).first(), (first+2).first(),
		(last-1).first(), (last+2).first()).Scan(&low, &high)
	return low, high, wrap("look for an instant", err)
}

// seek returns seqs such that all messages up to low were received before at, and all from high on
// at it or later.
func (d *db) seek(ctx context.Context, at time.Time) (low, high int64, err error) {
	return d.seekRange(ctx, at, at)
}
