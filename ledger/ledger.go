// Package ledger is the dispatcher's memory in PostgreSQL: every message, every
// attempt, the shared counters, the routing versions and the notices on their way out.
//
// A Ledger is a set of stores. What a message passes through:
//
//	Claims.Lock        begins a claim: store new ids, pick up due messages, show the
//	                   shared state under lock (one round trip)
//	Tx.Commit          ends it: store new messages as they were decided, and write down what
//	                   was decided of the others (one round trip, and one for each of three
//	                   tables with new rows)
//	Settlements.Settle outcomes, next steps, freed slots: one transaction, mostly of one
//	                   statement (one round trip)
//	Receipts.Receive   one transaction: merge receipts into their rows, and bring messages to
//	                   the state that they come to (two round trips)
//	Outbox.Publish     notices, in order, by one process at a time
//	Inbox.Book         messages of subscribers: parts joined, opt-out lists changed, an outbox
//	                   of their own (two round trips)
//
// The other stores hold what surrounds it: routing versions and ramps, limits, instances,
// ambiguities, opt-outs, the days that all this is kept by, and what is read of it.
//
// The decisions are not made here. Nothing is sent from here and no text is read: an envelope is
// bytes.
//
// What happens to messages is kept by UTC day, in partitions: messages, payloads (the only place of
// a number and a text) and attempts. The day is the upper part of a message's number, see Day.
// Across all days stand the ids that are recognised when they come again, due (what has something
// to do by itself) and held (slots that are held beyond their answer); triggers keep the last two.
//
// Lock order, which every writer keeps:
//
//	ids          ascending; claims, and who gives back the id of a dead record
//	awaited      SKIP LOCKED
//	receipts     by channel and reference; SKIP LOCKED for what is looked at
//	attempts     by message and number; their rows of held with them
//	due          by seq
//	messages     by seq
//	channels     by name
//	limits       by key, those over all channels first
//	cursors      by route
//	ambiguous    by message and key
//	outbox       its sequence
//
// Whoever changes a message that has a row in due locks that row first. A claim takes due rows,
// their messages and then the attempts whose tickets they go on with, all with SKIP LOCKED, so it
// never waits for them; what it inserts is new, so nobody can wait for it. Whoever takes a
// channel's lock owns what the routing says of its limits; their counts are written under their own
// locks, because a limit over all channels belongs to none, and a settlement that gives money back
// takes no channel. Who changes the routing holds an advisory lock before all of these, and then
// all channels and all limits; ramps are written under it, or in transactions that lock nothing
// else. Who wakes messages locks rows of due that nobody has locked, and then their messages. Who
// makes the partitions of a day holds an advisory lock and nothing else. Who empties or drops
// tables of days or of ids holds another one, and waits for a table for less than a second before
// it steps back, see Days.Keep. Who books messages of subscribers takes the advisory lock of those
// who join parts, if it has any, then marks in ascending order, then opt-outs by recipient; it
// touches nothing of the above, and a claim reads opt-outs without a lock.
package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/migrations"
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
	Days        *Days
	Audits      *Audits
	DeadRecords *DeadRecords
	Guards      *Guards

	Reconciliations *Reconciliations
	Seals           *Seals
	Requests        *Requests
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
	l.Messages = &Messages{db: d, routing: l.Routing, ambiguities: l.Ambiguities}
	l.DeadRecords = &DeadRecords{db: d, messages: l.Messages}
	l.Reports = &Reports{d}
	l.Guards = &Guards{d}
	l.Days = &Days{d}
	l.Audits = &Audits{d}
	l.Reconciliations = &Reconciliations{d}
	l.Seals = &Seals{d}
	l.Requests = &Requests{d}
	return l
}

// Migrate brings the schema at url up to date. It is idempotent and safe when several processes
// start at once.
func Migrate(ctx context.Context, url string) error {
	return clean(migrations.Migrate(ctx, url))
}

// GrantRoles makes the roles of the dispatcher and grants each what it needs, see migrations.Roles.
func GrantRoles(
	ctx context.Context, url string, leastKept time.Duration,
) (migrations.Granted, error) {
	done, err := migrations.Roles(ctx, url, leastKept)
	return done, clean(err)
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

// Clock reads the database's clock.
func (l *Ledger) Clock(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := l.hot.QueryRow(ctx, `select clock_timestamp()`).Scan(&now)
	return now.UTC(), wrap("read the clock", err)
}
