package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Days manages the daily partitions and what they hold: it makes those of the next days, switches
// the tables of ids, drops old payloads and facts, and erases the data of a subscriber.
type Days struct{ *db }

// Retention says for how long rows are kept. Facts must be at least as long as the others, and each
// at least a day.
type Retention struct {
	// IDs is for how long, at least, an id is recognised when it comes again. It is forgotten after at
	// most twice that time. A cancellation waits as long for a message that has not come.
	IDs time.Duration
	// Payloads is for how long numbers and texts are kept after the end of their message. They are
	// dropped by day, so some stay a day longer.
	Payloads time.Duration
	// Facts is for how long everything else is kept, from the end of the message's day on.
	Facts time.Duration
}

// leastRetention is the minimum of each duration of a Retention.
const leastRetention = 24 * time.Hour

// Validate returns an error for durations that are too short or do not go together.
func (r *Retention) Validate() error {
	switch {
	case r.IDs < leastRetention || r.Payloads < leastRetention:
		return fmt.Errorf("ids and payloads are kept for at least %s", leastRetention)
	case r.Facts < r.IDs || r.Facts < r.Payloads:
		return errors.New("facts are kept at least as long as ids and payloads")
	}
	return nil
}

// Kept is what a call of Keep did.
type Kept struct {
	// Elsewhere: another instance is doing the work, and nothing was done here.
	Elsewhere bool
	// Made are days that got partitions. Indexed are days whose messages can now be found by id after
	// the tables of ids have forgotten the id.
	Made, Indexed []Day
	// Receipts is how many receipts were moved to the partitions of their days.
	Receipts int64
	// Turned: the tables of ids were switched, and the older one was emptied.
	Turned bool
	// Payloads are days whose payloads were dropped, Facts days that were dropped altogether.
	Payloads, Facts []Day
	// Late is how many payloads were deleted that had outlived their day, because their messages have
	// ended since.
	Late int64
	// Skipped are days that are old enough to be dropped but have messages that have not ended, or
	// ended in the last half of the retention.
	Skipped []LivingDay
}

// Any reports whether anything was done.
func (k *Kept) Any() bool {
	days := len(k.Made) + len(k.Indexed) + len(k.Payloads) + len(k.Facts)
	return k.Turned || k.Late+k.Receipts > 0 || days > 0
}

// LivingDay is a day that is kept for some of its messages. Living is how many.
type LivingDay struct {
	Day    Day
	Living int64
}

// keepLock is the advisory lock of the session that runs Keep; one instance at a time has it.
const keepLock = 0x64617973

// keepSettings allow sequential scans and hash joins, because Keep reads whole partitions.
const keepSettings = `
	set application_name = 'dispatcher days'; set enable_seqscan = on; set enable_hashjoin = on;
	set enable_mergejoin = on; set plan_cache_mode = force_custom_plan;
	set idle_in_transaction_session_timeout = '60s'`

// Keep does the maintenance that is due:
//
//   - make partitions of the next days
//   - index the ids of past days
//   - summarise the index on claimed_at
//   - switch the tables of ids
//   - drop payloads and facts that are older than r
//   - move receipts of past days to partitions
//   - remove cancellations of messages that did not come
//
// Any number of instances may call it at any time: one of them does the work, the others return at
// once. The next call completes what a crash or an error left unfinished. A step that fails does
// not stop the others. Keep takes as long as reading a day takes. No claim or settlement waits for
// its locks longer than a second.
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
		wrap("drop late payloads", k.dropLate(ctx)),
		wrap("move receipts of past days", k.moveReceipts(ctx)),
		wrap("remove pending cancellations", k.dropPending(ctx)))
}

// unlockKeeping releases the lock before the session ends. The server notices the end of a session
// only after a moment, and a call of Keep within that moment would find the lock taken.
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

// dropPending removes cancellations whose message has not come for as long as ids are recognised.
func (k *keeper) dropPending(ctx context.Context) error {
	_, err := k.conn.Exec(ctx, `
		delete from dispatcher.pending_cancellations where at < now() - $1::interval`, k.r.IDs)
	return err
}

// days runs a query that returns days.
func (k *keeper) days(ctx context.Context, sql string, args ...any) ([]Day, error) {
	r, err := k.conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(r, pgx.RowTo[Day])
}

// summarise updates the BRIN index on claimed_at. Autovacuum does so too, but late, and not for the
// last range of a day. A partition that is being vacuumed is skipped: the vacuum summarises it.
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
			_, err := tx.Exec(ctx, `select set_config('lock_timeout', $1, true)`,
				strconv.FormatInt(firstWait.Milliseconds(), 10))
			if err == nil {
				_, err = tx.Exec(ctx, `select dispatcher.summarise($1)`, index)
			}
			return err
		})
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if err != nil && (!ok || pg.Code != "55P03") {
			return err
		}
	}
	return nil
}

// unindexed are the past days whose ids may no longer be recognised in a day from now.
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

// receiptsStay is for how many days, at least, receipts stay in the table in which new ones find
// them. See dispatcher.move_receipts.
const receiptsStay = 14

// withReceipts are the days of which receipts may move. Each is looked at once a day: most rows
// move the first time.
const withReceipts = `
	select day from dispatcher.days d
	where receipts_move and not dropping
	  and day < dispatcher.day_at(clock_timestamp() - make_interval(days => $1))
	  and coalesce(receipts_looked_at < clock_timestamp() - interval '1 day', true)
	  and exists (select from dispatcher.receipts r where r.message_seq >= dispatcher.first_of(d.day)
	    and r.message_seq < dispatcher.first_of(d.day + 1) offset 0)
	order by day`

// moveReceipts moves receipts that no longer change to the partitions of their days.
func (k *keeper) moveReceipts(ctx context.Context) error {
	days, err := k.days(ctx, withReceipts, receiptsStay)
	if err != nil {
		return err
	}
	for _, day := range days {
		// The first call finds no receipts: it makes the partition of the day. A session may see the
		// rows of a transaction a moment before it learns of the partitions that the transaction made,
		// and Receive would find the receipts in neither table. The call also counts as a look at the
		// day: if the process dies before all receipts have moved, the next look is a day later.
		_, err := k.conn.Exec(ctx, `select from dispatcher.move_receipts($1, $2)`, day,
			(day+1).first()-1)
		if err != nil {
			return err
		}
		for after := new(day.first() - 1); after != nil; {
			var moved int64
			if err := k.conn.QueryRow(ctx, `select upto, moved from dispatcher.move_receipts($1, $2)`,
				day, *after).Scan(&after, &moved); err != nil {
				return err
			}
			k.done.Receipts += moved
		}
	}
	return nil
}

// turnDue reports whether the ids of the older table may be forgotten. All ids of that table must
// be older than $1, and their messages must be in the index of past ids.
const turnDue = `
	select turn, since <= clock_timestamp() - $1::interval and not exists (
	  select from dispatcher.days where not ids_indexed and not dropping
	    and day <= dispatcher.day_at(clock_timestamp() - $1::interval))
	from dispatcher.id_turns`

// turnIDs empties the older table of ids and makes it the one for new ids. It locks the tables in
// the order of claims: the current one first. A lookup of an id may lock them in the other order.
// No deadlock is reported to it, because the wait for the lock is shorter than deadlock_timeout:
// this session gives up first.
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
	// firstWait and longestWait bound the wait for a lock. Other sessions queue behind this one and
	// wait as long. longestWait is below the default of deadlock_timeout.
	firstWait   = 50 * time.Millisecond
	longestWait = 800 * time.Millisecond
	// waitPause is the pause between two tries, in which other sessions can use the table.
	waitPause = 500 * time.Millisecond
)

// underLock takes a lock and calls do, in one transaction. It tries several times with a short
// lock_timeout, because other sessions queue behind a session that waits for a lock. If this
// process is frozen meanwhile, the server ends the session.
func (k *keeper) underLock(ctx context.Context, lock string, do func(pgx.Tx) error) error {
	for wait := firstWait; ; wait *= 2 {
		err := pgx.BeginFunc(ctx, k.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, fmt.Sprintf(`set local lock_timeout = %d;
				set local idle_in_transaction_session_timeout = '2s'; %s`,
				wait.Milliseconds(), lock)); err != nil {
				return err
			}
			return do(tx)
		})
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "55P03" ||
			wait >= longestWait {
			return err
		}
		if !Pause(ctx, waitPause) {
			return ctx.Err()
		}
	}
}
