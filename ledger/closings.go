package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
)

// DayClosing is the result of adding up a business day after its end. The first closing closes the
// day. A later one corrects it if Changes is not 0.
type DayClosing struct {
	Revision int
	At       time.Time
	// Changes is how many rows of figures were written.
	Changes int64
	// Figures are those that the closing corrected.
	Figures []FigureChange `db:"-"`
}

// FigureChange is a figure of a closed day that a later closing corrected.
type FigureChange struct {
	At                       time.Time // of that closing
	Revision                 int
	Route, Channel, Currency string
	// Figure is a column of audit.attempt_figures, failed for what was rejected, refused or throttled,
	// or carried for the messages that the channel carried.
	Figure   string
	Was, Now int64
}

// figureChanges are what the closings of a day corrected, in their order.
func figureChanges(ctx context.Context, q querier, date string) ([]FigureChange, error) {
	return queried(ctx, q, pgx.RowToStructByPos[FigureChange], `
		with attempts as (
		  select revision, route, channel, currency, sum(attempts) as attempts,
		    sum(accepted) as accepted, sum(rejected + refused + throttled) as failed,
		    sum(unknown) as unknown, sum(unsent) as unsent, sum(pending) as pending,
		    sum(delivered) as delivered, sum(undelivered) as undelivered,
		    sum(no_receipt) as no_receipt, sum(segments) as segments, sum(cost_micros) as cost_micros,
		    sum(unknown_segments) as unknown_segments, sum(unknown_micros) as unknown_micros
		  from audit.attempt_figures where day = $1::date
		  group by revision, route, channel, currency
		), differences as (
		  select a.revision, a.route, a.channel, a.currency, d.place, d.figure, d.n
		  from attempts a cross join lateral (values (2, 'attempts', a.attempts),
		    (3, 'accepted', a.accepted), (4, 'failed', a.failed), (5, 'unknown', a.unknown),
		    (6, 'unsent', a.unsent), (7, 'pending', a.pending), (8, 'delivered', a.delivered),
		    (9, 'undelivered', a.undelivered), (10, 'no_receipt', a.no_receipt),
		    (11, 'segments', a.segments), (12, 'cost_micros', a.cost_micros),
		    (13, 'unknown_segments', a.unknown_segments), (14, 'unknown_micros', a.unknown_micros)
		  ) d (place, figure, n)
		  union all
		  select revision, route, channel, '', 1, 'carried', sum(messages)
		  from audit.carried_figures where day = $1::date group by revision, route, channel
		), summed as (
		  select d.*, sum(n) over (partition by route, channel, currency, figure order by revision)
		    as now
		  from differences d
		)
		select c.at, c.revision, s.route, s.channel, s.currency, s.figure,
		  (s.now - s.n)::bigint, s.now::bigint
		from summed s join audit.closings c on c.day = $1::date and c.revision = s.revision
		where s.revision > 1 and s.n <> 0
		order by s.revision, s.route, s.channel, s.currency, s.place`, date)
}

// closings returns the closings of a day, in their order. There are none when the day was not
// closed. There are also none when it was closed in another time zone, with another beginning or
// end.
func closings(ctx context.Context, q querier, day BusinessDay) ([]DayClosing, error) {
	return queried(ctx, q, pgx.RowToStructByPos[DayClosing], `
		select revision, at, changes from audit.closings
		where day = $1 and exists (select from audit.closings c
		  where c.day = $1 and c.from_at = $2 and c.to_at = $3
		    and c.revision = (select max(revision) from audit.closings where day = $1))
		order by revision`, day.Date, day.From, day.To)
}

// closeLock is the advisory lock of the transaction that closes a day, for all instances.
const closeLock = 0x636c6f73

// closeSettings are for statements that read an hour at a time. Messages, attempts and their groups
// are hashed: the planner expects many more groups than there are, and would sort.
const closeSettings = `
	set application_name = 'dispatcher closing'; set enable_seqscan = on; set enable_hashjoin = on;
	set enable_sort = off; set plan_cache_mode = force_custom_plan; set work_mem = '64MB'`

// ErrRowsGone means that a closed day cannot be added up again.
var ErrRowsGone = errors.New("rows of the day have been dropped since it was closed: its figures " +
	"stay as they are")

// Close adds up a business day that is over, and stores its figures. What has changed since an
// earlier closing becomes another revision; without changes the figures stay. While another
// instance closes a day, ours is false and nothing is done. When the day has fewer attempts than
// its figures, its rows are being dropped, and Close returns ErrRowsGone.
//
// Everything is read in one snapshot, and a message is counted as it is in that snapshot. Close
// takes no lock that claims, settlements or receipts wait for.
//
// It calls done, unless that is nil, with how many hours have been added up so far.
func (s *Reports) Close(
	ctx context.Context, day BusinessDay, done func(hours int64),
) (c DayClosing, ours bool, err error) {
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
			c, err = s.closeIn(ctx, tx, day, done)
			return err
		})
	return c, ours && err == nil, wrap("close a day", err)
}

// closeIn is Close in its transaction. Its snapshot is that of the statement which took the
// advisory lock, and so shows the last revision, unless another closing ended between the two. Then
// the key of closings is a duplicate, and the caller tries again.
func (s *Reports) closeIn(
	ctx context.Context, tx pgx.Tx, day BusinessDay, done func(hours int64),
) (c DayClosing, err error) {
	err = tx.QueryRow(ctx, `
		select coalesce(max(revision), 0) + 1 from dispatcher.closings where day = $1`, day.Date).
		Scan(&c.Revision)
	if err != nil {
		return c, err
	}
	if err := s.addUp(ctx, tx, day, done); err != nil {
		return c, err
	}
	for _, figures := range []struct{ of, store string }{
		{"choices", closeChoices}, {"attempts", closeAttempts}, {"what was carried", closeCarried},
	} {
		tag, err := tx.Exec(ctx, figures.store, pgx.NamedArgs{
			"day": day.Date, "revision": c.Revision,
		})
		if err != nil {
			return c, fmt.Errorf("%s: %w", figures.of, err)
		}
		c.Changes += tag.RowsAffected()
	}
	var fewer bool // the number of attempts of a day never falls while their rows are kept
	if err = tx.QueryRow(ctx, `select coalesce(sum(attempts), 0) < 0
		from audit.attempt_figures where day = $1 and revision = $2`, day.Date, c.Revision).
		Scan(&fewer); err != nil {
		return c, err
	}
	if fewer {
		return c, ErrRowsGone
	}
	err = tx.QueryRow(ctx, `
		insert into dispatcher.closings (day, revision, zone, from_at, to_at, changes)
		values ($1, $2, $3, $4, $5, $6) returning at`,
		day.Date, c.Revision, day.Zone, day.From, day.To, c.Changes).Scan(&c.At)
	return c, err
}

// addUp adds up a day hour by hour, into the temporary table fresh. The sums are read by this
// process and copied back, because PostgreSQL does not use parallel workers for a statement that
// writes.
func (s *Reports) addUp(
	ctx context.Context, tx pgx.Tx, day BusinessDay, done func(hours int64),
) error {
	ready := int64(0)
	all := Split{Hour: true, Tenant: true, CallingCode: true, Sender: true}
	_, err := tx.Exec(ctx, `create temporary table fresh on commit drop as`+dayRows+` with no data`,
		day.parameters(0, 0, all))
	if err != nil {
		return err
	}
	for hour := range day.hours() {
		low, high, err := s.seekRange(ctx, hour.From, hour.To)
		if err != nil {
			return err
		}
		r, err := tx.Query(ctx, dayRows, hour.parameters(low, high, all))
		if err != nil {
			return err
		}
		columns := make([]string, len(r.FieldDescriptions()))
		for i, f := range r.FieldDescriptions() {
			columns[i] = f.Name
		}
		sums, err := pgx.CollectRows(r, pgx.CollectableRow.Values)
		if err != nil {
			return err
		}
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"fresh"}, columns, pgx.CopyFromRows(sums))
		if err != nil {
			return err
		}
		if ready++; done != nil {
			done(ready)
		}
	}
	return nil
}

// hours are the hours of the day, as BusinessDays. There are 25 on a day on which clocks go back.
func (d BusinessDay) hours() iter.Seq[BusinessDay] {
	return func(yield func(BusinessDay) bool) {
		for hour := d; hour.From.Before(d.To); hour.From = hour.To {
			hour.To = hour.From.Add(time.Hour)
			if hour.To.After(d.To) {
				hour.To = d.To
			}
			if !yield(hour) {
				return
			}
		}
	}
}

// afterDay is how long after its end a day is closed at the earliest. By then most of its receipts
// have come.
const afterDay = time.Hour

// Unclosed lists the dates, as 2026-11-21, of business days that may have to be closed or closed
// again, oldest first. These are all kept days that were never closed, and closed days of two
// kinds: those that are three times as old as at their last closing (an hour, three hours, nine,
// and so on), and those with a message or attempt whose ambiguity a person has settled since,
// within the last day. A closed day is listed only until half of the retention of its rows is over,
// because later rows may be gone. The time zone is not known here. So the list begins a day early,
// for zones west of UTC, and may hold days that are not over yet: see CanClose.
func (s *Reports) Unclosed(ctx context.Context, facts time.Duration) ([]string, error) {
	dates, err := rows(ctx, s.db, pgx.RowTo[string], `
		select to_char(d, 'YYYY-MM-DD')
		from (select date '1970-01-01' + min(day) - 1 as first from dispatcher.days
		  where not dropping) kept,
		  generate_series(first, now() at time zone 'UTC' + interval '14 hours',
		    interval '1 day') d
		where not exists (select from dispatcher.closings where day = d::date)
		union all
		select to_char(day, 'YYYY-MM-DD') from dispatcher.closings group by day
		having now() - max(to_at) < $1::interval / 2
		  and (now() - max(to_at) >= 3 * (max(at) - max(to_at)) or day in (
		    select c.day
		    from dispatcher.ambiguous s
		    join dispatcher.messages m on m.seq = s.message_seq
		    join dispatcher.attempts a on a.message_seq = s.message_seq and a.attempt = s.last
		    join dispatcher.closings c on c.day between (m.received_at at time zone 'UTC')::date - 1
		        and (a.claimed_at at time zone 'UTC')::date + 1
		      and (m.received_at >= c.from_at and m.received_at < c.to_at
		        or a.claimed_at >= c.from_at and a.claimed_at < c.to_at)
		    where s.author <> '' and s.closed_at > now() - interval '1 day'
		      and not exists (select from dispatcher.closings later where later.day = c.day
		        -- A settlement may have begun before the closing and ended after it.
		        and later.at >= s.closed_at + interval '10 s')))
		order by 1`, facts)
	return dates, wrap("look for days to close", err)
}

// ClosedDay is a business day that has been closed.
type ClosedDay struct {
	Date        string // 2026-11-21
	Corrections int    // how often its figures were corrected
	// Unsealed means that its newest figures will be in the log of hashes in some minutes.
	Unsealed bool
}

// ClosedDays returns all closed days, in their order. Figures that are not in the log after an hour
// count as sealed, because nobody seems to keep the log any more.
func (s *Reports) ClosedDays(ctx context.Context) ([]ClosedDay, error) {
	days, err := rows(ctx, s.db, pgx.RowToStructByPos[ClosedDay], `
		select to_char(day, 'YYYY-MM-DD'), count(*) filter (where revision > 1 and changes > 0),
		  max(at) > now() - interval '1 hour' and exists (select from audit.seals)
		    and max(at) >= coalesce((select to_at from audit.seals where closings
		      order by number desc limit 1), '-infinity')
		from audit.closings group by day order by day`)
	return days, wrap("list closed days", err)
}

// CanClose reports whether the day has been over for at least afterDay.
func (d *BusinessDay) CanClose(now time.Time) bool { return now.Sub(d.To) >= afterDay }
