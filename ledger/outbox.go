package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Outbox is the notices on their way out. Messages of subscribers have an outbox of their own.
type Outbox struct {
	*db
	out, heard outlet
}

// The advisory locks of the one process that publishes, and of the one that publishes messages of
// subscribers. A session lock ends with its session, so there is never a leader that cannot reach
// the database.
const (
	leadership      int64 = 0x6c65646765720002
	leadershipHeard int64 = 0x6c65646765720007
)

// deleteTimeout bounds the removal of published notices when the leadership is given
// up: what is not removed is published again.
const deleteTimeout = 5 * time.Second

// leadershipPause is how often a process that does not publish asks whether it may.
const leadershipPause = time.Second

// Publish hands up to about limit notices (whole transactions, at least one) to send, in order, and
// removes them once send has returned nil: in the round trip of the next call, or when the
// leadership is given up. It returns how many there were; 0 without an error means that there are
// none, or that another process publishes. Only one process does at a time; the others take over
// when its connection ends.
//
// Delivery is at least once: what send has done is done again when the removal does
// not succeed or the leader changes in between.
//
// Order per key: rows are published by seq, and seq ascends for each message. A transaction draws
// the seq of its notices after it has locked the rows of their messages, and keeps the locks until
// it commits; the next transaction that writes about the same message gets its lock, and so draws
// its seq, only after that. Rows of different messages may become visible out of seq order. That is
// why publishing takes the rows that are there and never skips ahead of a number, and why the
// sequence must not be cached by sessions.
//
// Each notice carries that seq and the row's created_at, the clock at the same moment, see
// Notice.Seq. A clock that is set back, or that of a server which takes over, could show less than
// before; the notices of this process then keep the latest time that it has published.
func (s *Outbox) Publish(
	ctx context.Context, limit int, send func(context.Context, []Notice) error,
) (int, error) {
	return s.out.publish(ctx, limit, send)
}

// PublishInbound is Publish for messages of subscribers. They have an outbox of their own and do
// not wait for the other notices, nor those for them; the process that publishes them may be
// another.
func (s *Outbox) PublishInbound(
	ctx context.Context, limit int, send func(context.Context, []Notice) error,
) (int, error) {
	return s.heard.publish(ctx, limit, send)
}

// Lead tries to become the process that publishes and reports whether it is.
func (s *Outbox) Lead(ctx context.Context) (bool, error) {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	return s.out.takeLeadership(ctx)
}

func newOutbox(d *db) *Outbox {
	return &Outbox{
		db: d,
		out: outlet{
			db: d, lock: leadership,
			read: selectOutbox, remove: removePublished, barrier: barrierOutbox,
		},
		heard: outlet{
			db: d, lock: leadershipHeard,
			read: selectHeard, remove: removeHeard, barrier: barrierHeard,
		},
	}
}

// resign gives up both leaderships.
func (s *Outbox) resign() {
	s.out.resign()
	s.heard.resign()
}

// outlet is the way out of one outbox.
type outlet struct {
	*db
	lock    int64  // that the process holds which publishes
	read    string // rows by seq until they hold so many notices
	remove  string // those of some seqs
	barrier string // replication barrier, if there are any

	mu        sync.Mutex // held while publishing
	conn      *pgx.Conn  // guarded by mu; holds the leadership lock when held is set
	held      bool       // guarded by mu
	published []int64    // guarded by mu; sent and not yet removed
	// guarded by mu; the latest Notice.At that was sent; survives a new connection
	latest time.Time
	asked  time.Time // guarded by mu; when the lock was last asked for in vain
}

func (o *outlet) publish(
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

// neverBack raises the times of notices so that none is before an earlier one or before latest, and
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

// takeLeadership makes sure of the connection and asks for the lock. mu is held.
func (o *outlet) takeLeadership(ctx context.Context) (bool, error) {
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

// dropLeadership ends the connection, and with it the leadership. mu is held.
func (o *outlet) dropLeadership() {
	if o.conn != nil {
		closeConn(o.conn)
	}
	o.conn, o.held, o.published = nil, false, nil
}

// resign removes what was published and gives the leadership up.
func (o *outlet) resign() {
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
	removeHeard     = `delete from dispatcher.inbound_outbox where seq = any($1)`
	barrierOutbox   = replicationBarrier + ` where exists (select from dispatcher.outbox)`
	barrierHeard    = replicationBarrier + ` where exists (select from dispatcher.inbound_outbox)`
)

// selectOutbox and selectHeard read rows by seq until they hold so many notices.
const (
	selectOutbox = `
	select seq, created_at, kind, keys, "values", coalesce(headers::text, '') from (
	  select *, sum(cardinality(keys)) over (order by seq) - cardinality(keys) as before
	  from (select * from dispatcher.outbox order by seq limit $1) o
	) o where before < $1 order by seq`
	selectHeard = `
	select seq, created_at, 'inbound', keys, "values", '' from (
	  select *, sum(cardinality(keys)) over (order by seq) - cardinality(keys) as before
	  from (select * from dispatcher.inbound_outbox order by seq limit $1) o
	) o where before < $1 order by seq`
)

// readOutbox removes what the last call published and reads what comes next, in one
// round trip and one transaction.
func (o *outlet) readOutbox(
	ctx context.Context, limit int,
) (seqs []int64, notices []Notice, err error) {
	batch := &pgx.Batch{}
	// also of none: a server that takes no writes refuses it
	batch.Queue(o.remove, append([]int64{}, o.published...))
	batch.Queue(o.read, limit).Query(func(rows pgx.Rows) error {
		seqs, notices, err = scanOutbox(rows)
		return err
	})
	if len(o.published) == 0 {
		batch.Queue(o.barrier) // after them: none of what was read goes away before
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
	var keys []string
	var values [][]byte
	_, err = pgx.ForEachRow(rows, []any{&seq, &at, &kind, &keys, &values, &headers}, func() error {
		seqs, at = append(seqs, seq), at.UTC()
		lists := make([][]Header, len(keys))
		if headers != "" {
			if err := json.Unmarshal([]byte(headers), &lists); err != nil {
				return err
			}
		}
		for i := range keys {
			notices = append(notices, Notice{
				Kind: NoticeKind(kind), Key: keys[i], Value: values[i], Headers: lists[i], Seq: seq,
				At: at,
			})
		}
		return nil
	})
	return seqs, notices, err
}

// Unpublished is how many notices wait in the outbox and how old the oldest is, by
// the database's clock.
func (s *Outbox) Unpublished(ctx context.Context) (notices int64, age time.Duration, err error) {
	err = s.reports.QueryRow(ctx, `
		select coalesce(sum(cardinality(keys)), 0),
		  coalesce(clock_timestamp() - min(created_at), '0')
		from (select keys, created_at from dispatcher.outbox union all select keys, created_at
		from dispatcher.inbound_outbox) o`).Scan(&notices, &age)
	return notices, age, wrap("count notices", err)
}
