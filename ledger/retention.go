package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Days keeps what happened for as long as it is to be kept: it makes the partitions of the next
// days, turns the tables of ids, drops payloads and facts that are old enough, and erases those of
// a subscriber.
type Days struct{ *db }

// Retention says how long what is kept. Facts must be at least as long as the others, and all of
// them at least a day.
type Retention struct {
	// IDs is for how long an id is recognised when it comes again, at least; it is forgotten after
	// twice that time.
	IDs time.Duration
	// Payloads is for how long numbers and texts are kept after the end of their message. They are
	// dropped with their day, so some stay a day longer.
	Payloads time.Duration
	// Facts is for how long everything else is kept after the day of a message.
	Facts time.Duration
}

// leastRetention is what each duration of a Retention is at least.
const leastRetention = 24 * time.Hour

// Validate reports durations that do not go together.
func (r *Retention) Validate() error {
	switch {
	case r.IDs < leastRetention || r.Payloads < leastRetention:
		return fmt.Errorf("ids and payloads are kept for at least %s", leastRetention)
	case r.Facts < r.IDs || r.Facts < r.Payloads:
		return errors.New("facts are kept at least as long as ids and payloads")
	}
	return nil
}

// Kept is what a call of Keep has done.
type Kept struct {
	// Elsewhere: another instance is at it, and nothing was done here.
	Elsewhere bool
	// Made are days that partitions were made for, Indexed those whose messages are found by their
	// id from now on, whether or not it would still be recognised.
	Made, Indexed []Day
	// Turned: the older table of ids was emptied.
	Turned bool
	// Payloads are days whose payloads were dropped, Facts those that were dropped altogether.
	Payloads, Facts []Day
	// Late are the payloads that had outlived their day and were dropped now, after the end of their
	// messages.
	Late int64
	// Skipped are days that are old enough to be dropped but have messages that have not ended.
	Skipped []LivingDay
}

// Any reports whether anything was done.
func (k *Kept) Any() bool {
	return k.Turned || k.Late > 0 || len(k.Made)+len(k.Indexed)+len(k.Payloads)+len(k.Facts) > 0
}

// LivingDay is a day that is kept because messages of it have not ended.
type LivingDay struct {
	Day    Day
	Living int64
}

// keepLock is the advisory lock of the session that keeps the days, for all instances.
const keepLock = 0x64617973

// keepSettings shape that session: its statements go through whole partitions.
const keepSettings = `
	set application_name = 'dispatcher days'; set enable_seqscan = on; set enable_hashjoin = on;
	set enable_mergejoin = on; set plan_cache_mode = force_custom_plan;
	set idle_in_transaction_session_timeout = '60s'`

// Keep does what is due: it makes partitions, indexes the ids of past days, summarises the times of
// attempts, turns the tables of ids, and drops payloads and facts that are older than r. Any number
// of instances may call it at any time: one of them does the work, the others return at once. What
// a crash or an error leaves unfinished the next call ends; one step that fails does not hold up
// the others. It takes as long as it takes to read a day, and no lock that claims or settlements
// wait for longer than a second.
func (s *Days) Keep(ctx context.Context, r Retention) (kept Kept, err error) {
	if err := r.Validate(); err != nil {
		return kept, err
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return kept, wrap("keep the days", err)
	}
	defer closeConn(conn)
	var ours bool
	if _, err := conn.Exec(ctx, keepSettings); err != nil {
		return kept, wrap("keep the days", err)
	}
	err = conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, keepLock).Scan(&ours)
	if err != nil || !ours {
		kept.Elsewhere = err == nil
		return kept, wrap("keep the days", err)
	}
	defer unlockKeeping(ctx, conn)
	k := keeper{db: s.db, conn: conn, r: r, done: &kept}
	return kept, errors.Join(
		wrap("make the next days", k.makeDays(ctx)),
		wrap("index the ids of past days", k.indexIDs(ctx)),
		wrap("summarise attempts", k.summarise(ctx)),
		wrap("turn the tables of ids", k.turnIDs(ctx)),
		wrap("drop old days", k.dropFacts(ctx)),
		wrap("drop old payloads", k.dropPayloads(ctx)),
		wrap("drop late payloads", k.dropLate(ctx)))
}

// unlockKeeping gives the lock back before the session ends: the server notices that a session has
// gone only after a moment, and who calls Keep within it would find the lock taken.
func unlockKeeping(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	//nolint:errcheck // The end of the session does the same.
	conn.Exec(ctx, `select pg_advisory_unlock($1)`, keepLock)
}

// keeper is one call of Keep that has the lock.
type keeper struct {
	*db
	conn *pgx.Conn
	r    Retention
	done *Kept
}

// makeDays makes the partitions of today and the next days.
func (k *keeper) makeDays(ctx context.Context) error {
	before, err := k.days(ctx, `select coalesce(max(day), 0) from dispatcher.days`)
	if err != nil {
		return err
	}
	if err := k.db.makeDays(ctx); err != nil {
		return err
	}
	k.done.Made, err = k.days(ctx,
		`select day from dispatcher.days where day > $1 order by day`, before[0])
	return err
}

// days runs a query for days.
func (k *keeper) days(ctx context.Context, sql string, args ...any) ([]Day, error) {
	r, err := k.conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(r, pgx.RowTo[Day])
}

// summarise brings the index on claimed_at up to date. Autovacuum does so where it gets to it, and
// not for the last range of a day. A partition that is being vacuumed is passed over: it is
// summarised at the end of that.
func (k *keeper) summarise(ctx context.Context) error {
	r, err := k.conn.Query(ctx, `select inhrelid::bigint from pg_inherits
		where inhparent = 'dispatcher.attempts_claimed_at'::regclass`)
	if err != nil {
		return err
	}
	indexes, err := pgx.CollectRows(r, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	for _, index := range indexes {
		err := pgx.BeginFunc(ctx, k.conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, fmt.Sprintf(`set local lock_timeout = %d;
				select dispatcher.summarise(%d)`, firstWait.Milliseconds(), index))
			return err
		})
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if err != nil && (!ok || pg.Code != "55P03") {
			return err
		}
	}
	return nil
}

// unindexed are the past days whose ids may not be recognised any more in a day.
const unindexed = `
	select day from dispatcher.days
	where not ids_indexed and not dropping
	  and day <= dispatcher.day_at(clock_timestamp() + interval '1 day' - $1::interval)
	  and day < dispatcher.day_at(clock_timestamp() - interval '10 minutes')
	order by day`

// indexIDs stores the ids of past days where dispatcher.seq_of finds them.
func (k *keeper) indexIDs(ctx context.Context) error {
	days, err := k.days(ctx, unindexed, k.r.IDs)
	if err != nil {
		return err
	}
	for _, day := range days {
		if _, err := k.conn.Exec(ctx, `select dispatcher.index_ids($1)`, day); err != nil {
			return err
		}
		k.done.Indexed = append(k.done.Indexed, day)
	}
	return nil
}

// turnDue reports whether the ids of the older table may be forgotten: when all of the other one
// will be recognised for as long as they have to be, and the messages of those that are forgotten
// are found without them.
const turnDue = `
	select turn, since <= clock_timestamp() - $1::interval and not exists (
	  select from dispatcher.days where not ids_indexed and not dropping
	    and day <= dispatcher.day_at(clock_timestamp() - $1::interval))
	from dispatcher.id_turns`

// turnIDs empties the older table of ids, into which new ids go from now on. The tables are locked
// in the order in which claims lock them: the current one first. Whoever asks about an id may lock
// them the other way round; the wait for a lock is shorter than deadlock_timeout, so it is this
// session that steps back.
func (k *keeper) turnIDs(ctx context.Context) error {
	var turn int64
	var due bool
	if err := k.conn.QueryRow(ctx, turnDue, k.r.IDs).Scan(&turn, &due); err != nil || !due {
		return err
	}
	older := fmt.Sprintf("dispatcher.ids_%d", (turn+1)%2)
	err := k.underLock(ctx, fmt.Sprintf(`lock table dispatcher.ids_%d, %s in access exclusive mode`,
		turn%2, older), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `truncate `+older)
		if err == nil {
			_, err = tx.Exec(ctx, `update dispatcher.id_turns
				set turn = turn + 1, since = clock_timestamp()`)
		}
		return err
	})
	if err == nil {
		k.done.Turned = true
		k.calendar.turn.Store(turn + 1)
	}
	return err
}

const (
	// firstWait and longestWait bound how long a lock is waited for that others queue behind: they
	// wait as long. The longest is shorter than deadlock_timeout is by default.
	firstWait   = 50 * time.Millisecond
	longestWait = 800 * time.Millisecond
	// waitPause is how long others have a table for themselves before it is tried again.
	waitPause = 500 * time.Millisecond
)

// underLock takes a lock, and does something under it, in one transaction. It waits for the lock
// several times, and not long at a time, as others queue behind.
func (k *keeper) underLock(ctx context.Context, lock string, do func(pgx.Tx) error) error {
	for wait := firstWait; ; wait *= 2 {
		err := pgx.BeginFunc(ctx, k.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, fmt.Sprintf(`set local lock_timeout = %d; %s`,
				wait.Milliseconds(), lock)); err != nil {
				return err
			}
			return do(tx)
		})
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "55P03" ||
			wait >= longestWait {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(waitPause):
		}
	}
}
