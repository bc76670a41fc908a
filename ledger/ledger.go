// Package ledger stores everything in PostgreSQL: messages, attempts, the shared counters, the
// routing versions, and the notices that are to be published.
//
// A Ledger is a set of stores. These are on the path of a message:
//
//	Claims.Lock        begins a claim: store new ids, pick up due messages, show the
//	                   shared state under lock (one round trip)
//	Tx.Commit          ends the claim: store new messages as they were decided, and update
//	                   the others (one round trip, and one for each of three tables with
//	                   new rows: messages, payloads, and attempts that are not first ones)
//	Settlements.Settle outcomes, next states, freed slots: one transaction (one round trip)
//	Receipts.Receive   one transaction: merge receipts into their rows, and update the
//	                   states of messages (three round trips)
//	Outbox.Publish     notices, in order, by one process at a time
//	Inbox.Record       messages of subscribers: join parts, change opt-out lists, write to
//	                   an outbox of their own (two round trips)
//
// The other stores hold routing versions and ramps, limits, instances, ambiguities, opt-outs, the
// daily partitions, and reports.
//
// The ledger makes no decisions about messages, sends nothing, and reads no text: an envelope is
// bytes.
//
// Messages, payloads (the only place of numbers and texts) and attempts are partitioned by UTC day.
// The day is the upper part of a message's number, see Day. The other tables span all days, among
// them the ids that are recognised when they come again, due (messages with a next_at) and held
// (attempts that keep a slot beyond their answer). Triggers maintain the last two.
//
// Lock order, which every writer keeps:
//
//	attempts     new rows, by message: nobody can hold a lock on them
//	ids          ascending; claims, and the release of the id of a dead record
//	awaited      SKIP LOCKED
//	receipts     by channel and reference; SKIP LOCKED for rows that are due
//	attempts     by message and number; a row of held with its attempt
//	messages     by seq; a row of due with its message
//	channels     by name
//	limits       by key, those over all channels first
//	cursors      by route
//	freed_slots  by channel; not claims, which only read it
//	ambiguous    by message and key
//	outbox       its sequence
//	open_claims  SKIP LOCKED
//
// A transaction that changes a message has locked it, and the trigger then locks its row of due. A
// transaction that locks a row of due first must therefore not wait for the message. A claim and
// WakeFor do so: they take due rows, then their messages, and a claim then the attempts whose
// tickets are used again, all with SKIP LOCKED. The rows that a claim inserts are new, so nobody
// can wait for them.
//
// A claim holds its channels until its commit. Slots are therefore given back in freed_slots, so
// that neither waits for the other; the next claim subtracts them from the active count. A
// settlement locks a channel only to lower its rate.
//
// The lock of a channel protects what the routing says of its limits. Their counts are written
// under the locks of the limits themselves, because a limit over all channels belongs to no
// channel, and a settlement gives money back to limits of channels that it has not locked. A change
// of the routing takes an advisory lock before all of these, and then all channels and all limits.
// Ramps are written under that advisory lock, or in transactions that lock nothing else. The making
// of partitions takes an advisory lock and nothing else. Emptying or dropping tables of days or of
// ids takes another one, and waits for a table less than a second before it gives up and tries
// again, see Days.Keep. Recording messages of subscribers takes the advisory lock for joining
// parts, if there are any, then marks in ascending order, then the advisory lock of opt-out lists.
// It locks nothing of the above, and a claim reads opt-outs without a lock.
package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/migrations"
)

// Config says where the ledger is, and describes this instance.
type Config struct {
	// URL is a libpq URL or key=value string. It is never repeated in an error.
	URL string
	// MaxConns bounds the connections for claims and settlements; 0 means 4. Up to eight more serve
	// reports (three), the two publishers, the watch on the routing, the identity and the heartbeat;
	// maintenance and audits open others while they run.
	MaxConns int
	// Region, Host and Version describe this instance in dispatcher.instances.
	Region, Host, Version string
	// KeyID is the id of the draw key under which this instance makes the keys of its submissions.
	// Recovery needs it.
	KeyID string
	// Tracer sees every statement; nil for none.
	Tracer pgx.QueryTracer
}

// defaultMaxConns is enough for commands, and for three claims and a settlement at a time.
const defaultMaxConns = 4

// Ledger holds the stores on one database, and their connections. It is safe for concurrent use.
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

	Cancellations   *Cancellations
	Reconciliations *Reconciliations
	Seals           *Seals
	Sealed          *Sealed
	Requests        *Requests
}

// newLedger creates the stores. The pools are not connected yet.
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
	l.Cancellations = &Cancellations{d}
	l.DeadRecords = &DeadRecords{db: d, messages: l.Messages}
	l.Reports = &Reports{d}
	l.Guards = &Guards{d}
	l.Days = &Days{d}
	l.Audits = &Audits{d}
	l.Reconciliations = &Reconciliations{d}
	l.Seals = &Seals{d}
	l.Sealed = &Sealed{d}
	l.Requests = &Requests{d}
	return l
}

// Migrate brings the schema at url up to date. It is idempotent, and several processes may call it
// at once.
func Migrate(ctx context.Context, url string) error {
	return clean(migrations.Migrate(ctx, url))
}

// GrantRoles creates the roles of the dispatcher and grants each what it needs, see
// migrations.Roles.
func GrantRoles(
	ctx context.Context, url string, leastKept time.Duration,
) (migrations.Granted, error) {
	done, err := migrations.Roles(ctx, url, leastKept)
	return done, clean(err)
}

// Close gives up the publisher's leadership and closes all connections. It waits for those in use.
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
