package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Outbox holds the notices that are to be published. Messages of subscribers have an outbox of
// their own.
type Outbox struct {
	*db
	out, inbound outboxPublisher
}

// The advisory lock of the process that publishes notices, and that of the process that publishes
// messages of subscribers. A session lock ends with its session, so the leader can always reach the
// database.
const (
	leadership        int64 = 0x6c65646765720002
	leadershipInbound int64 = 0x6c65646765720007
)

// deleteTimeout bounds the deletion of published notices when the leadership is given up. Those
// that are not deleted are published again.
const deleteTimeout = 5 * time.Second

// leadershipPause is how often a process that does not publish tries to take the lock.
const leadershipPause = time.Second

// Publish passes up to about limit notices (whole transactions, at least one) to send, in order. It
// deletes them after send has returned nil: in the round trip of the next call, or when the
// leadership is given up. It returns how many notices it sent; 0 without an error means that there
// are none, or that another process publishes. One process publishes at a time; another takes over
// when its connection ends.
//
// Delivery is at least once: notices are sent again when their deletion fails, or when the leader
// changes before it.
//
// Order per key: rows are published by seq, and seq ascends for each message. A transaction draws
// the seq of its notices after it has locked the rows of their messages, and keeps these locks
// until it commits. The next transaction that writes about the same message gets the lock, and
// draws its seq, only after that. Rows of different messages may become visible out of seq order.
// So Publish reads all rows that are there, not only those above the last seq that it published,
// and the sequence must not be cached by sessions.
//
// Each notice carries this seq and the row's created_at, the clock at the same moment, see
// Notice.Seq. If the clock goes back, or is behind on a server that takes over, the notices of this
// process keep the latest time that it has published.
func (s *Outbox) Publish(
	ctx context.Context, limit int, send func(context.Context, []Notice) error,
) (int, error) {
	return s.out.publish(ctx, limit, send)
}

// PublishInbound is Publish for messages of subscribers. They have an outbox of their own, so
// neither waits for the other, and different processes may publish them.
func (s *Outbox) PublishInbound(
	ctx context.Context, limit int, send func(context.Context, []Notice) error,
) (int, error) {
	return s.inbound.publish(ctx, limit, send)
}

func newOutbox(d *db) *Outbox {
	return &Outbox{
		db: d,
		out: outboxPublisher{
			db: d, lock: leadership,
			read: selectOutbox, remove: removePublished, barrier: barrierOutbox,
		},
		inbound: outboxPublisher{
			db: d, lock: leadershipInbound,
			read: selectInbound, remove: removeInbound, barrier: barrierInbound,
		},
	}
}

// resign gives up both leaderships.
func (s *Outbox) resign() {
	s.out.resign()
	s.inbound.resign()
}

// outboxPublisher publishes one outbox.
type outboxPublisher struct {
	*db
	lock    int64  // the advisory lock of the process that publishes
	read    string // statement: reads rows by seq until they hold $1 notices
	remove  string // statement: deletes rows by seq
	barrier string // statement: the replication barrier, if there are rows

	mu        sync.Mutex // held while publishing
	conn      *pgx.Conn  // guarded by mu; holds the leadership lock when held is set
	held      bool       // guarded by mu
	published []int64    // guarded by mu; sent and not yet removed
	// guarded by mu; the latest Notice.At that was sent; kept across connections
	latest time.Time
	asked  time.Time // guarded by mu; when it last tried to take the lock
}

func (o *outboxPublisher) publish(
	ctx context.Context, limit int, send func(context.Context, []Notice) error,
) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if leads, err := o.takeLeadership(ctx); err != nil || !leads {
		return 0, err
	}
	seqs, notices, err := o.readOutbox(ctx, limit)
	if err != nil {
		o.dropLeadership()
		return 0, wrap("read outbox", err)
	}
	if len(seqs) == 0 {
		return 0, nil
	}
	latest := neverBack(notices, o.latest)
	if err := send(ctx, notices); err != nil {
		return 0, fmt.Errorf("publish %d notices: %w", len(notices), err)
	}
	o.published, o.latest = seqs, latest
	return len(notices), nil
}

// neverBack raises the times of notices so that none is before an earlier one or before latest. It
// returns the last of them.
func neverBack(notices []Notice, latest time.Time) time.Time {
	for i := range notices {
		if n := &notices[i]; n.At.Before(latest) {
			n.At = latest
		} else {
			latest = n.At
		}
	}
	return latest
}

// takeLeadership connects if necessary and tries to take the lock. mu is held.
func (o *outboxPublisher) takeLeadership(ctx context.Context) (bool, error) {
	if o.conn != nil && o.guard.Replaced(o.conn.PgConn()) {
		o.dropLeadership()
	}
	if o.conn == nil {
		conn, err := o.connect(ctx)
		if err != nil {
			return false, wrap("connect publisher", err)
		}
		o.conn = conn
	}
	if o.held {
		return true, nil
	}
	if time.Since(o.asked) < leadershipPause {
		return false, nil
	}
	o.asked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, o.timeouts.roundTrip)
	defer cancel()
	err := o.conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, o.lock).Scan(&o.held)
	if err != nil {
		o.dropLeadership()
		return false, wrap("become publisher", err)
	}
	return o.held, nil
}

// dropLeadership closes the connection, which ends the leadership. mu is held.
func (o *outboxPublisher) dropLeadership() {
	if o.conn != nil {
		closeConn(o.conn)
	}
	o.conn, o.held, o.published = nil, false, nil
}

// resign deletes what was published and gives up the leadership.
func (o *outboxPublisher) resign() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.published) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
		defer cancel()
		_, _ = o.conn.Exec(ctx, o.remove, o.published) // at worst they are published again
	}
	o.dropLeadership()
}

const (
	removePublished = `delete from dispatcher.outbox where seq = any($1)`
	removeInbound   = `delete from dispatcher.inbound_outbox where seq = any($1)`
)

// barrierOutbox and barrierInbound are replicationBarrier, unless there is nothing to publish.
const (
	barrierOutbox = `
	select 1 from pg_logical_emit_message(true, 'dispatcher', '')
	where exists (select from dispatcher.outbox)`
	barrierInbound = `
	select 1 from pg_logical_emit_message(true, 'dispatcher', '')
	where exists (select from dispatcher.inbound_outbox)`
)

// selectOutbox and selectInbound read rows by seq until they hold $1 notices.
const (
	selectOutbox = `
	select seq, created_at, kind, keys, "values", coalesce(headers::text, '') from (
	  select *, sum(cardinality(keys)) over (order by seq) - cardinality(keys) as before
	  from (select * from dispatcher.outbox order by seq limit $1) o
	) o where before < $1 order by seq`
	selectInbound = `
	select seq, created_at, 'inbound', keys, "values", '' from (
	  select *, sum(cardinality(keys)) over (order by seq) - cardinality(keys) as before
	  from (select * from dispatcher.inbound_outbox order by seq limit $1) o
	) o where before < $1 order by seq`
)

// readOutbox deletes what the last call published and reads the next rows, in one round trip and
// one transaction.
func (o *outboxPublisher) readOutbox(
	ctx context.Context, limit int,
) (seqs []int64, notices []Notice, err error) {
	batch := &pgx.Batch{}
	// also when there is nothing to delete: a server that is read-only then returns an error
	batch.Queue(o.remove, append([]int64{}, o.published...))
	batch.Queue(o.read, limit).Query(func(rows pgx.Rows) error {
		seqs, notices, err = scanOutbox(rows)
		return err
	})
	if len(o.published) == 0 {
		batch.Queue(o.barrier) // after the read, so that it covers all rows that were read
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeouts.roundTrip)
	defer cancel()
	if err := o.conn.SendBatch(ctx, batch).Close(); err != nil {
		return nil, nil, err
	}
	o.published = nil
	return seqs, notices, nil
}

func scanOutbox(rows pgx.Rows) (seqs []int64, notices []Notice, err error) {
	var seq int64
	var at time.Time
	var kind, headers string
	var keys texts
	var values pieces
	_, err = pgx.ForEachRow(rows, []any{&seq, &at, &kind, &keys, &values, &headers}, func() error {
		seqs, at = append(seqs, seq), at.UTC()
		names := keys.list()
		lists := make([][]Header, len(names))
		if headers != "" {
			if err := json.Unmarshal([]byte(headers), &lists); err != nil {
				return err
			}
		}
		notices = slices.Grow(notices, len(names))
		for i := range names {
			notices = append(notices, Notice{
				Kind: NoticeKind(kind), Key: names[i], Value: values.list[i], Headers: lists[i],
				Seq: seq, At: at,
			})
		}
		return nil
	})
	return seqs, notices, err
}

// Unpublished is how many notices are in the outboxes, and the age of the oldest by the database's
// clock.
func (s *Outbox) Unpublished(ctx context.Context) (notices int64, age time.Duration, err error) {
	err = s.reports.QueryRow(ctx, `
		select coalesce(sum(cardinality(keys)), 0),
		  coalesce(clock_timestamp() - min(created_at), '0')
		from (select keys, created_at from dispatcher.outbox union all select keys, created_at
		from dispatcher.inbound_outbox) o`).Scan(&notices, &age)
	return notices, age, wrap("count notices", err)
}
