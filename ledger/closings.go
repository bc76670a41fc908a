package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// DayClosing is one time that a business day was added up after its end. The first one closed it, the
// others corrected it where Changes is not 0.
type DayClosing struct {
	Revision int
	At       time.Time
	// Changes is how many rows of figures were written.
	Changes int64
}

// Closings are those of a day, in their order; none when it has not been closed, or was closed when
// it began or ended at other instants because the routing named another time zone.
func (s *Reports) Closings(
	ctx context.Context, day time.Time, zone *time.Location,
) ([]DayClosing, error) {
	all, err := s.closings(ctx, NewBusinessDay(day, zone))
	return all, wrap("look for the closing of a day", err)
}

func (d *db) closings(ctx context.Context, day BusinessDay) ([]DayClosing, error) {
	return rows(ctx, d, pgx.RowToStructByPos[DayClosing], `
		select revision, at, changes from audit.closings
		where day = $1 and exists (select from audit.closings c
		  where c.day = $1 and c.from_at = $2 and c.to_at = $3
		    and c.revision = (select max(revision) from audit.closings where day = $1))
		order by revision`, day.Date, day.From, day.To)
}

// closeLock is the advisory lock of the transaction that closes a day, for all instances.
const closeLock = 0x636c6f73

// closeSettings are for statements that read a whole day.
const closeSettings = `
	set application_name = 'dispatcher closing'; set enable_seqscan = on;
	set enable_hashjoin = on; set enable_mergejoin = on; set enable_partitionwise_join = on;
	set plan_cache_mode = force_custom_plan; set work_mem = '64MB'`

// Close adds up a business day that is over, and remembers it. What has changed since the day was
// closed before becomes another revision. To close it twice changes nothing. While another instance
// closes a day it returns false and does nothing.
//
// All is read in one snapshot, in which a message is counted with what was known of it at that
// moment, and no lock is taken that claims, settlements or receipts wait for.
func (s *Reports) Close(ctx context.Context, day BusinessDay) (c DayClosing, ours bool, err error) {
	low, high, err := s.seekRange(ctx, day.From, day.To)
	if err != nil {
		return c, false, wrap("close a day", err)
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return c, false, wrap("close a day", err)
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, closeSettings); err != nil {
		return c, false, wrap("close a day", err)
	}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead},
		func(tx pgx.Tx) error {
			err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, closeLock).Scan(&ours)
			if err != nil || !ours {
				return err
			}
			c, err = closeIn(ctx, tx, day, low, high)
			return err
		})
	return c, ours && err == nil, wrap("close a day", err)
}

// closeIn is Close in its transaction. The lock came with a statement before the snapshot that
// tells the last revision, unless another closing ended in between: then the key of closings is
// taken, and the caller comes again.
func closeIn(
	ctx context.Context, tx pgx.Tx, day BusinessDay, low, high int64,
) (c DayClosing, err error) {
	err = tx.QueryRow(ctx, `
		select coalesce(max(revision), 0) + 1 from dispatcher.closings where day = $1`, day.Date).
		Scan(&c.Revision)
	if err != nil {
		return c, err
	}
	args := day.parameters(low, high)
	args["revision"] = c.Revision
	for _, f := range []*figureTable{&choiceFigures, &attemptFigures, &carriedFigures} {
		tag, err := tx.Exec(ctx, f.close(), args)
		if err != nil {
			return c, fmt.Errorf("%s: %w", f.name, err)
		}
		c.Changes += tag.RowsAffected()
	}
	err = tx.QueryRow(ctx, `
		insert into dispatcher.closings (day, revision, zone, from_at, to_at, changes)
		values ($1, $2, $3, $4, $5, $6) returning at`,
		day.Date, c.Revision, day.Zone, day.From, day.To, c.Changes).Scan(&c.At)
	return c, err
}

// afterDay is how long after its end a day is closed at the earliest: by then most of its receipts
// have come.
const afterDay = time.Hour

// Unclosed lists the dates, as 2026-11-21, of business days that may have to be closed, or to be
// looked at again, the oldest first. Those are all days since the first one that is kept, and days
// that have become three times as old as they were when they were looked at last: an hour, three
// hours, nine, and so on, until half of their rows' retention is over. After that rows may be gone.
// Whether such a day is over, the caller knows, who knows the time zones: see CanClose.
func (s *Reports) Unclosed(ctx context.Context, facts time.Duration) ([]string, error) {
	dates, err := rows(ctx, s.db, pgx.RowTo[string], `
		select to_char(d, 'YYYY-MM-DD')
		from (select date '1970-01-01' + min(day) as first from dispatcher.days
		  where not dropping) kept,
		  generate_series(first, now() at time zone 'UTC' + interval '14 hours',
		    interval '1 day') d
		where not exists (select from dispatcher.closings where day = d::date)
		union all
		select to_char(day, 'YYYY-MM-DD') from dispatcher.closings group by day
		having now() - max(to_at) >= 3 * (max(at) - max(to_at))
		  and now() - max(to_at) < $1::interval / 2
		order by 1`, facts)
	return dates, wrap("look for days to close", err)
}

// CanClose reports whether the day has been over for long enough.
func (d *BusinessDay) CanClose(now time.Time) bool { return now.Sub(d.To) >= afterDay }
