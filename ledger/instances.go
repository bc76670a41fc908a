package ledger

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Instances registers this process and reads the others that share the ledger.
type Instances struct {
	*db
	routing  *Routing
	identity identity // set by TakeIdentity
	heart    heart    // used by Beat
}

// close closes the connections of the identity and the heartbeat, which releases their locks.
func (s *Instances) close() {
	s.dropIdentity()
	s.heart.mu.Lock()
	defer s.heart.mu.Unlock()
	s.dropHeart()
}

// unbrokenGap is the longest time between two heartbeats that count as unbroken. It is several
// times the usual interval, and less than the time after which an instance is taken for dead.
const unbrokenGap = 2 * time.Second

// Register inserts this process's row into dispatcher.instances. Lock needs it: each attempt
// belongs to the instance that submits it, and recovery finds the attempts of a dead instance by
// it.
func (s *Instances) Register(ctx context.Context) error {
	var id int64
	var known bool
	err := s.hot.QueryRow(ctx, `
		insert into dispatcher.instances (region, host, version, key_id, counts, beating_since,
		  reads_open_claims)
		values ($1, $2, $3, nullif($4, ''), '{}', clock_timestamp(), true)
		returning id, `+allReadOpenClaims,
		s.config.Region, s.config.Host, s.config.Version, s.config.KeyID).Scan(&id, &known)
	if err != nil {
		return wrap("register instance", err)
	}
	s.open.forget() // it belongs to the instance that this process was before, if any
	s.instance.Store(id)
	s.openKnown.Store(known)
	return nil
}

// allReadOpenClaims is false while an instance of a build before migration 039 is alive, see
// db.openKnown.
const allReadOpenClaims = `not exists (select from dispatcher.instances o
	where o.left_at is null and not o.reads_open_claims)`

// ID is the number that Register got; 0 before.
func (s *Instances) ID() int64 { return s.instance.Load() }

// beatTimeout bounds one heartbeat on an open connection. The next one may use a better connection.
const beatTimeout = 3 * time.Second

// heart is the connection of the heartbeats. The connections of the pool may all be waiting, for
// locks or for a database that is away, and a late heartbeat stops this process from sending.
type heart struct {
	mu   sync.Mutex
	conn *pgx.Conn // guarded by mu; nil before the first heartbeat and after a failed one
}

// Beat stores that this process is alive, and returns both clocks. Heartbeats more than unbrokenGap
// apart do not count as unbroken: a process that was cut off for so long cannot tell whether the
// others are dead. oldestOpen is the claim time, by the database's clock, of its oldest attempt
// without an outcome; zero when there is none. In that case oldest_open_at becomes the time of the
// heartbeat before, because a hanging server may execute this one long after it was sent, when
// newer claims have been committed. A row that was removed meanwhile is inserted again.
//
// Heartbeat.Sent is this process's clock just before the statement is sent, after connecting.
func (s *Instances) Beat(ctx context.Context, oldestOpen time.Time) (b Heartbeat, err error) {
	id := s.instance.Load()
	if id == 0 {
		return b, wrap("heartbeat", ErrNotRegistered)
	}
	s.heart.mu.Lock()
	defer s.heart.mu.Unlock()
	conn, err := s.beatConn(ctx)
	if err != nil {
		return b, wrap("heartbeat", err)
	}
	// A stop does not cancel the statement: the server might execute it nevertheless, after Leave, and
	// insert the row again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatTimeout)
	defer cancel()
	b.Sent = time.Now()
	var known bool
	err = conn.QueryRow(ctx, `
		insert into dispatcher.instances as i (id, region, host, version, key_id, last_seen,
		  oldest_open_at, counts, beating_since, reads_open_claims)
		values ($1, $2, $3, $4, nullif($7, ''), clock_timestamp(), $5, '{}', clock_timestamp(), true)
		on conflict (id) do update set last_seen = excluded.last_seen,
		  oldest_open_at = coalesce(excluded.oldest_open_at, i.last_seen), left_at = null,
		  beating_since = case when excluded.last_seen - i.last_seen > $6::interval
		    then excluded.last_seen else i.beating_since end
		returning last_seen, least(beating_since, (
		  select min(o.beating_since) from dispatcher.instances o
		  where o.id <> $1 and o.left_at is null and o.last_seen > clock_timestamp() - $6::interval)),
		  `+allReadOpenClaims,
		id, s.config.Region, s.config.Host, s.config.Version, instant(oldestOpen), unbrokenGap,
		s.config.KeyID).
		Scan(&b.At, &b.Unbroken, &known)
	if err != nil {
		s.dropHeart()
		return Heartbeat{}, wrap("heartbeat", err)
	}
	b.At, b.Unbroken = b.At.UTC(), b.Unbroken.UTC()
	s.calendar.saw(b.At)
	s.openKnown.Store(known)
	return b, nil
}

// Heartbeat is one that was stored.
type Heartbeat struct {
	Sent time.Time // this process's clock when it left
	At   time.Time // the database's clock when it was written
	// Unbroken is since when, by the database's clock, this process or another has beaten without a
	// break: before that there was no process, or no database.
	Unbroken time.Time
}

// beatConn returns the connection. It opens one when there is none, or when another server has
// taken over. mu is held.
func (s *Instances) beatConn(ctx context.Context) (*pgx.Conn, error) {
	h := &s.heart
	if h.conn != nil && s.guard.Replaced(h.conn.PgConn()) {
		s.dropHeart()
	}
	if h.conn == nil {
		conn, err := s.connect(ctx)
		if err != nil {
			return nil, err
		}
		h.conn = conn
	}
	return h.conn, nil
}

// dropHeart closes the connection. mu is held.
func (s *Instances) dropHeart() {
	if s.heart.conn != nil {
		closeConn(s.heart.conn)
	}
	s.heart.conn = nil
}

// Leave removes this process's row at an orderly stop. If it has an attempt without outcome, the
// trigger instances_kept keeps the row, which counts as dead at once, so that other instances
// recover the attempt without waiting.
func (s *Instances) Leave(ctx context.Context) error {
	id := s.instance.Swap(0)
	if id == 0 {
		return nil
	}
	// A session that the server has ended fails only when it is used, so there may be one failure for
	// each idle session.
	for tries := s.hot.Stat().IdleConns(); ; tries-- {
		err := s.leave(ctx, id)
		if tries <= 0 || !Unavailable(err) {
			return wrap("leave", err)
		}
	}
}

func (s *Instances) leave(ctx context.Context, id int64) error {
	if err := s.leaveIdentity(ctx, id); err != nil {
		return err
	}
	if err := s.storeOwn(ctx, id, 0); err != nil {
		return err
	}
	_, err := s.hot.Exec(ctx, `
		with gone as (delete from dispatcher.instances where id = $1 returning id)
		update dispatcher.instances set left_at = clock_timestamp()
		where id = $1 and id not in (select id from gone)`, id)
	return err
}

// LiveInstances is what the live instances have reported. Limit policies use it.
type LiveInstances struct {
	// At is the database's clock at the time of reading.
	At time.Time
	// Members are the instances that are alive, by id.
	Members []Member
}

// Member is one live instance.
type Member struct {
	ID     int64
	Region string
	// Counts is what it granted per channel in the last whole minute that it reported.
	Counts map[string]Grants
}

// Grants is how much was granted on a channel, in each unit of limits.
type Grants struct {
	Messages int64 `json:"messages"`
	Segments int64 `json:"segments"`
	Micros   int64 `json:"micros"`
}

// Plus returns the sum of both.
func (g Grants) Plus(o Grants) Grants {
	return Grants{g.Messages + o.Messages, g.Segments + o.Segments, g.Micros + o.Micros}
}

// Gather stores what this instance granted per channel in the last whole minute, and its state. It
// returns the reports of all instances that have sent a heartbeat within deadAfter. It takes one
// round trip.
func (s *Instances) Gather(
	ctx context.Context, counts map[string]Grants, state *InstanceState, deadAfter time.Duration,
) (LiveInstances, error) {
	id := s.instance.Load()
	if id == 0 {
		return LiveInstances{}, wrap("gather", ErrNotRegistered)
	}
	if counts == nil {
		counts = map[string]Grants{} // nil would be null, which is not a JSON object
	}
	own, err := json.Marshal(counts)
	if err != nil {
		return LiveInstances{}, wrap("gather", err)
	}
	said, err := state.text()
	if err != nil {
		return LiveInstances{}, wrap("gather", err)
	}
	batch := &pgx.Batch{}
	batch.Queue(`
		update dispatcher.instances set counts = $2::jsonb, state = $3::jsonb where id = $1`,
		id, string(own), said)
	var l LiveInstances
	batch.Queue(`select clock_timestamp()`).QueryRow(func(row pgx.Row) error {
		return row.Scan(&l.At)
	})
	batch.Queue(`
		select id, region, coalesce(counts::text, '{}') from dispatcher.instances
		where left_at is null and last_seen >= clock_timestamp() - $1::interval
		order by id`, deadAfter).
		Query(func(rows pgx.Rows) (err error) {
			l.Members, err = pgx.CollectRows(rows, scanMember)
			return err
		})
	if err := s.hot.SendBatch(ctx, batch).Close(); err != nil {
		return LiveInstances{}, wrap("gather", err)
	}
	l.At = l.At.UTC()
	return l, nil
}

func scanMember(row pgx.CollectableRow) (Member, error) {
	var m Member
	var counts string
	if err := row.Scan(&m.ID, &m.Region, &counts); err != nil {
		return m, err
	}
	return m, json.Unmarshal([]byte(counts), &m.Counts)
}
