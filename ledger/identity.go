package ledger

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// identityLocks is the first key of the advisory locks on identities; the second is the number.
const identityLocks int32 = 0x6964656e

const (
	// earlyEnd is how long a process must have worked so that its end without an orderly stop does not
	// count as part of a crash loop.
	earlyEnd = 30 * time.Second
	// firstPause and longestPause bound the pause of a process in a crash loop. There is no pause
	// after the first early end, which may be an accident; after each further one it doubles.
	firstPause   = 2 * time.Second
	longestPause = time.Minute
	// keepInterval is how often the lock is confirmed.
	keepInterval = 5 * time.Second
)

// Identity distinguishes this process from others that run. Its successor after a crash gets the
// same one.
type Identity struct {
	// Number is at least 1: the one that this host had before, else the lowest free one.
	Number int
	// EarlyEnds is how many processes before this one ended in a row, each without an orderly stop and
	// soon after its start.
	EarlyEnds int
	// Pause is how long to take no messages because of EarlyEnds, while other processes work.
	Pause time.Duration
}

// identity is the number of this process, and the session that holds its advisory lock.
type identity struct {
	mu     sync.Mutex
	conn   *pgx.Conn // guarded by mu; nil while it is broken
	number int       // guarded by mu; 0 before TakeIdentity
}

// TakeIdentity takes a free number, and keeps it until Leave. It must be called after Register, and
// may be called again after an error.
func (s *Instances) TakeIdentity(ctx context.Context) (Identity, error) {
	if s.ID() == 0 {
		return Identity{}, wrap("take identity", ErrNotRegistered)
	}
	s.identity.mu.Lock()
	defer s.identity.mu.Unlock()
	conn, err := s.connect(ctx)
	if err != nil {
		return Identity{}, wrap("take identity", err)
	}
	id, err := s.takeFree(ctx, conn)
	if err != nil {
		closeConn(conn)
		return Identity{}, wrap("take identity", err)
	}
	s.identity.conn, s.identity.number = conn, id.Number
	s.loops.Go(s.keepIdentity)
	return id, nil
}

// takeFree locks the best free number. It tries again when another process was faster.
func (s *Instances) takeFree(ctx context.Context, conn *pgx.Conn) (Identity, error) {
	for {
		var number int
		var locked bool
		err := conn.QueryRow(ctx, lockFreeIdentity, pgx.QueryExecModeExec, identityLocks,
			s.config.Host).Scan(&number, &locked)
		if err != nil {
			return Identity{}, err
		}
		if locked {
			return s.writeIdentity(ctx, conn, number)
		}
	}
}

// lockFreeIdentity prefers numbers that a process of this host had, and among these one of a
// process that crashed, so that its partitions are read again at once. The generated numbers
// include one for each held lock, because a process that starts at the same time may hold a number
// that has no row yet. So there is always a free number.
const lockFreeIdentity = `
	with held as (
	  select objid::bigint as number from pg_locks
	  where locktype = 'advisory' and classid = $1::integer::oid and objsubid = 2 and granted
	    and database = (select oid from pg_database where datname = current_database())
	)
	select number, pg_try_advisory_lock($1, number) from (
	 select number::integer from (
	  select number, host = $2 as mine, left_at is null as crashed from dispatcher.identities
	  union all
	  select n, false, false
	  from generate_series(1, (select count(*) from dispatcher.identities) + (select count(*)
	    from held) + 1) n
	  where not exists (select from dispatcher.identities where number = n)
	) c
	where number not in (select number from held)
	 order by mine and crashed desc, mine desc, number limit 1
	) best`

// lockIdentity reports whether this process was the last that took the number, and if so tries to
// lock it again. locked is false while the server has not noticed that the earlier session has
// ended.
func (s *Instances) lockIdentity(
	ctx context.Context, conn *pgx.Conn, number int,
) (locked, ours bool, err error) {
	err = conn.QueryRow(ctx, `
		select case when ours then pg_try_advisory_lock($1, $2) else false end, ours
		from (select exists (select from dispatcher.identities
		  where number = $2 and instance = $3) as ours) i`,
		pgx.QueryExecModeExec, identityLocks, int32(number), s.ID()).Scan(&locked, &ours)
	return locked, ours, err
}

// writeIdentity stores that this process has the locked number.
func (s *Instances) writeIdentity(
	ctx context.Context, conn *pgx.Conn, number int,
) (Identity, error) {
	id := Identity{Number: number}
	err := conn.QueryRow(ctx, `
		insert into dispatcher.identities as i (number, instance, host, version, taken_at,
		  working_from)
		values ($1, $2, $3, $4, statement_timestamp(), statement_timestamp())
		on conflict (number) do update set instance = excluded.instance, host = excluded.host,
		  version = excluded.version,
		  taken_at = excluded.taken_at, left_at = null,
		  (early_ends, working_from) = (
		    select e.n, excluded.taken_at + case when e.n < 2 then interval '0'
		      else least($6::interval * (1 << least(e.n - 2, 10)), $7::interval) end
		    from (select case when i.left_at is null and i.host = excluded.host
		      and i.version = excluded.version
		      and excluded.taken_at < i.working_from + $5::interval then i.early_ends + 1
		        else 0 end as n) e)
		returning early_ends, working_from - taken_at`,
		pgx.QueryExecModeExec, number, s.ID(), s.config.Host, s.config.Version, earlyEnd,
		firstPause, longestPause).
		Scan(&id.EarlyEnds, &id.Pause)
	return id, err
}

// OthersWork reports whether another process takes messages: one that has an identity, does not
// pause, and has sent a heartbeat within deadAfter.
func (s *Instances) OthersWork(
	ctx context.Context, deadAfter time.Duration,
) (work bool, err error) {
	err = s.hot.QueryRow(ctx, `
		select exists (
		  select from dispatcher.identities i join dispatcher.instances p on p.id = i.instance
		  where i.instance <> $1 and i.left_at is null and i.working_from <= clock_timestamp()
		    and p.left_at is null and p.last_seen >= clock_timestamp() - $2::interval)`,
		s.ID(), deadAfter).Scan(&work)
	return work, wrap("look for other processes", err)
}

// BeginWork stores that this process takes messages from now on.
func (s *Instances) BeginWork(ctx context.Context) error {
	_, err := s.hot.Exec(ctx, `update dispatcher.identities set working_from = clock_timestamp()
		where instance = $1 and working_from > clock_timestamp()`, s.ID())
	return wrap("begin work", err)
}

// keepIdentity takes the lock again when its session has ended, until Close. The session ends when
// the database restarts or another server becomes the primary.
func (s *Instances) keepIdentity() {
	ticker := time.NewTicker(keepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.confirmIdentity()
		case <-s.closing.Done():
			return
		}
	}
}

func (s *Instances) confirmIdentity() {
	ctx, cancel := context.WithTimeout(s.closing, questionTimeout)
	defer cancel()
	i := &s.identity
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.number == 0 {
		return // left
	}
	if i.conn != nil && !s.guard.Replaced(i.conn.PgConn()) && i.conn.Ping(ctx) == nil {
		return
	}
	if i.conn != nil {
		closeConn(i.conn)
		i.conn = nil
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return // the next tick tries again
	}
	locked, ours, err := s.lockIdentity(ctx, conn, i.number)
	switch {
	case err == nil && !ours:
		// Another process has taken the number meanwhile. This one is removed from the consumer groups
		// and goes on as a dynamic member, without a number to lock.
		i.number = 0
	case locked:
		i.conn = conn
		return
	}
	closeConn(conn) // the session before may still have the lock: the next tick tries again
}

// leaveIdentity stores, at an orderly stop, that this process did not crash, and releases its
// number.
func (s *Instances) leaveIdentity(ctx context.Context, instance int64) error {
	_, err := s.hot.Exec(ctx,
		`update dispatcher.identities set left_at = clock_timestamp() where instance = $1`,
		instance)
	s.dropIdentity()
	return err
}

// dropIdentity ends the session that holds the lock.
func (s *Instances) dropIdentity() {
	s.identity.mu.Lock()
	defer s.identity.mu.Unlock()
	if s.identity.conn != nil {
		closeConn(s.identity.conn)
	}
	s.identity.conn, s.identity.number = nil, 0
}
