// Package ledger is the dispatcher's memory in PostgreSQL: every message, every
// attempt, the shared counters, the routing versions and the notices on their way out.
//
// A Ledger is a set of stores. What a message passes through:
//
//	Claims.Lock        begins a claim: store new messages, pick up due ones, show the
//	                   shared state under lock (one round trip)
//	Tx.Commit          ends it: write down what was decided (one round trip)
//	Settlements.Settle outcomes, next steps, freed slots: one transaction, mostly of one
//	                   statement (one round trip)
//	Receipts.Receive   one transaction: merge receipts into their rows, and bring messages to
//	                   the state that they come to (two round trips)
//	Outbox.Publish     notices, in order, by one process at a time
//	Inbox.Book         messages of subscribers: parts joined, opt-out lists changed, an outbox
//	                   of their own (two round trips)
//
// The other stores hold what surrounds it: routing versions and ramps, limits, instances,
// ambiguities, opt-outs, and what is read of all this.
//
// The decisions are not made here. Nothing is sent from here and no text is read: an envelope is
// bytes.
//
// Lock order, which every writer keeps: rows of receipts by channel and reference (with SKIP LOCKED
// by whoever looks at what is due), then message rows (new ids ascending, due rows with SKIP
// LOCKED, settled rows by seq), then attempts (by message, or with SKIP LOCKED: settlements and
// receipts take attempts before messages, so a claim never waits for an attempt), then channels by
// name, then limits by key (those over all channels first), then cursors by route, then the
// outbox's sequence. Whoever takes a channel's lock owns what the routing says of its limits; their
// counts are written under their own locks, because a limit over all channels belongs to none, and
// a settlement that gives money back takes no channel. Who changes the routing holds an advisory
// lock before all of these, and then all channels and all limits; ramps are written under it, or in
// transactions that lock nothing else. Who wakes messages locks their rows alone and waits for
// none. Who books messages of subscribers takes the advisory lock of those who join parts, if it
// has any, then marks in ascending order, then opt-outs by recipient; it touches nothing of the
// above, and a claim reads opt-outs without a lock.
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

	"dispatcher/ledger/migrations"
	"dispatcher/ledger/primary"
)

// Config says where the ledger is and who is asking.
type Config struct {
	// URL is a libpq URL or key=value string. It is never repeated in an error.
	URL string
	// MaxConns bounds the connections for claims and settlements; 0 means 4, which is as
	// fast as more: beyond that the counters' locks are what claims wait for. Up to
	// seven more connections serve reports, publishing, the watch on the routing, the
	// identity and the heart-beat.
	MaxConns int
	// Region, Host and Version describe this instance in dispatcher.instances.
	Region, Host, Version string
	// Tracer sees every statement; nil for none.
	Tracer pgx.QueryTracer
}

// defaultMaxConns is enough for two claims and two settlements at a time.
const defaultMaxConns = 4

// questionTimeout bounds a question that takes no time on a server that answers.
const questionTimeout = 5 * time.Second

// scoutInterval is how often all hosts of the address are asked which of them is the newest
// primary.
const scoutInterval = 10 * time.Second

// Ledger is the stores on one database, and their connections. It is safe for concurrent use.
type Ledger struct {
	*db
	close context.CancelFunc // ends db.closing

	Claims      *Claims
	Settlements *Settlements
	Receipts    *Receipts
	Ambiguities *Ambiguities
	Inbox       *Inbox
	OptOuts     *OptOuts
	Outbox      *Outbox
	Routing     *Routing
	Ramps       *Ramps
	Limits      *Limits
	Instances   *Instances
	Messages    *Messages
	Reports     *Reports
}

// newLedger has no pools yet.
func newLedger(ctx context.Context, d *db) *Ledger {
	l := &Ledger{db: d}
	d.closing, l.close = context.WithCancel(context.WithoutCancel(ctx))
	l.Routing = &Routing{d}
	l.Ramps = &Ramps{d}
	l.Limits = &Limits{d, l.Routing}
	l.Instances = &Instances{db: d, routing: l.Routing}
	l.Claims = &Claims{db: d}
	l.Settlements = &Settlements{d}
	l.Receipts = &Receipts{d}
	l.Ambiguities = &Ambiguities{d}
	l.Inbox = &Inbox{d}
	l.OptOuts = &OptOuts{d}
	l.Outbox = newOutbox(d)
	l.Messages = &Messages{d, l.Routing, l.Ambiguities}
	l.Reports = &Reports{d}
	return l
}

// db is what the stores share: the pools, and what all connections have in common.
type db struct {
	config   Config
	hot      *pgxpool.Pool   // claims and settlements
	reports  *pgxpool.Pool   // everything whose plan depends on the data, and changes of the routing
	single   *pgx.ConnConfig // for connections outside the pools
	guard    primary.Guard   // of all connections
	instance atomic.Int64    // set by Instances.Register

	closing  context.Context // ended by Close
	loops    sync.WaitGroup
	timeouts timeouts
}

// timeouts are for connections without a statement timeout. TCP alone would wait much longer for a
// server that has vanished.
type timeouts struct {
	roundTrip time.Duration // for an answer
	watch     time.Duration // for a notification, before the server is asked whether it is there
}

// hotSettings shape the sessions of claims and settlements.
//
// Their statements join arrays to primary keys. A generic plan for that is always
// right and saves planning, half a millisecond for each batch; the switched-off join
// methods keep a plan that was made while a table was small from being a bad one later.
//
// The timeouts are a protection against this process: if it is frozen in
// mid-transaction, the server takes the counters' locks back.
var hotSettings = map[string]string{
	"application_name":                    "dispatcher",
	"plan_cache_mode":                     "force_generic_plan",
	"enable_seqscan":                      "off",
	"enable_hashjoin":                     "off",
	"enable_mergejoin":                    "off",
	"jit":                                 "off",
	"statement_timeout":                   "30s",
	"idle_in_transaction_session_timeout": "3s",
}

// Connect opens the ledger. The schema must be up to date: see Migrate.
func Connect(ctx context.Context, c Config) (*Ledger, error) {
	d := &db{
		config:   c,
		timeouts: timeouts{roundTrip: 15 * time.Second, watch: 10 * time.Second},
	}
	hot, err := d.poolConfig(hotSettings)
	if err != nil {
		return nil, err
	}
	reports, err := d.poolConfig(map[string]string{"application_name": "dispatcher reports"})
	if err != nil {
		return nil, err
	}
	reports.MaxConns = 2
	d.single = hot.ConnConfig.Copy()
	// Connections outside the pools idle between two polls for as long as they like,
	// and wait for locks without end.
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
	if err := d.hot.Ping(ctx); err != nil {
		l.Close()
		return nil, wrap("connect to ledger", err)
	}
	return l, nil
}

// scout looks for a newer primary until Close. Connections to the one before are given up when they
// are wanted next.
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

// poolConfig is that of a pool whose sessions have these settings.
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
	config.PingTimeout = questionTimeout // of an idle connection: a server that hangs is left sooner
	config.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		return !d.guard.Replaced(conn.PgConn()), nil
	}
	return config, nil
}

// errAddress stands for every error in the address, whose text may quote the password.
var errAddress = errors.New("connect to ledger: DISPATCHER_POSTGRES_URL is neither a valid postgres:// URL nor a valid key=value string")

// Migrate brings the schema at url up to date. It is idempotent and safe when several processes
// start at once.
func Migrate(ctx context.Context, url string) error {
	return clean(migrations.Migrate(ctx, url))
}

// Close gives up leadership and closes all connections. It waits for those in use.
func (l *Ledger) Close() {
	l.endLoops()
	l.Instances.close()
	l.Outbox.resign()
	l.reports.Close()
	l.hot.Close()
}

// endLoops waits for the loops that run until Close.
func (l *Ledger) endLoops() {
	l.close()
	l.loops.Wait()
}

// Ping reports whether the database answers.
func (l *Ledger) Ping(ctx context.Context) error { return wrap("ping", l.hot.Ping(ctx)) }

// connect opens a connection outside the pools.
func (d *db) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, d.single.Copy())
}

// closeConn ends a connection without waiting long for a polite end.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the session ends with the socket in any case
}

// rows runs a query of a report and collects its rows.
func rows[T any](ctx context.Context, d *db, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	r, err := d.reports.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	out, err := pgx.CollectRows(r, scan)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return out, nil
}
