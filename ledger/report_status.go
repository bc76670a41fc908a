package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Recent is what the channels did in the last minutes, and what waits now.
type Recent struct {
	Now time.Time // the database's clock
	// Since is the beginning of the period that Carried counts. It is later than asked for when there
	// are more than mostRecent messages.
	Since   time.Time
	Carried []RecentCarried
	// Outcomes counts the attempts by channel, outcome and code; within a channel the largest count is
	// first.
	Outcomes []RecentOutcome
	Queues   []Queue
	// Oldest has a row for each group of waiting messages, as Present.Waiting does.
	Oldest []Oldest
	// Dead counts the dead records of the last day, Ambiguous the submissions that are being resolved.
	Dead, Ambiguous int64
}

// RecentCarried counts the messages of a route, received since Recent.Since, that a channel
// accepted.
type RecentCarried struct {
	Route, Channel string
	Accepted       int64
}

// RecentOutcome counts attempts of a channel. Outcome is empty for attempts without an answer.
type RecentOutcome struct {
	Channel, Outcome, Code string
	Attempts               int64
	// Awaited counts those that were accepted more than a minute ago, and Receipts those of them with
	// a receipt.
	Awaited, Receipts int64
}

// Queue counts the messages of a lane that have not been sent yet.
type Queue struct {
	Lane      string
	Waiting   int64      // without Scheduled and Paused
	Since     *time.Time // since when the oldest of Waiting could have left; nil for none
	Scheduled int64      // their time has not come, or quiet hours hold them
	Paused    int64      // an operator or a guard has paused them
}

// Oldest is since when the oldest message of a group could have left, see Queue.
type Oldest struct {
	On, Reason string // as in Wait
	Since      time.Time
}

// mostRecent is how many messages are read at most to count what was carried. That takes a third of
// a second.
const mostRecent = 200_000

// newestSeq is the clock and the number of the newest message from $1 on; 0 for none.
const newestSeq = `select now(), coalesce((select max(seq) from dispatcher.messages
	where seq >= $1), 0)`

// recentCarried reads messages and attempts by ranges of their primary keys. It leaves out messages
// that were planned under earlier versions than $3: other shares were agreed for them.
const recentCarried = `
	select coalesce(m.route, ''), a.channel, count(*)
	from (select seq, route from dispatcher.messages
	  where seq > $1 and received_at >= $2 and routing_version >= $3 offset 0) m
	join dispatcher.attempts a on a.message_seq = m.seq
	where a.message_seq > $1 and a.outcome = 'accepted'
	group by 1, 2 order by 1, 2`

// recentSince is when the oldest message above a number was received.
const recentSince = `select received_at from dispatcher.messages where seq > $1 order by seq limit 1`

// recentOutcomes reads the newest block ranges of the attempts, as Faults does.
const recentOutcomes = `
	select a.channel, coalesce(a.outcome, ''), coalesce(a.provider_code, ''), count(*),
	  count(*) filter (where a.outcome = 'accepted' and a.settled_at < now() - interval '1 minute'),
	  count(*) filter (where a.outcome = 'accepted' and a.settled_at < now() - interval '1 minute'
	    and a.receipt_state is not null)
	from dispatcher.all_attempts a where a.claimed_at >= $1
	group by 1, 2, 3 order by 1, 4 desc, 2, 3`

// queues counts the rows of due by lane. There is an index for those that wait; scheduled and
// paused ones are read one by one, a million in a tenth of a second. A message waits since its
// receipt, or since its send_at if it came as scheduled.
const queues = `
	select coalesce(d.lane, h.lane), coalesce(d.messages, 0),
	  case when d.lane is not null then coalesce(least(d.send_at,
	    (select m.received_at from dispatcher.messages m where m.seq = d.oldest)), now())
	  end,
	  coalesce(h.scheduled, 0), coalesce(h.paused, 0)
	from (select lane, count(*) as messages, min(seq) filter (where send_at is null) as oldest,
	    min(send_at) as send_at from dispatcher.due
	  where state not in ('scheduled', 'accepted') and reason is distinct from 'paused'
	    and reason is distinct from 'quiet_hours' group by lane) d
	full join (select lane,
	    count(*) filter (where reason is distinct from 'paused') as scheduled,
	    count(*) filter (where reason = 'paused') as paused from dispatcher.due
	  where state = 'scheduled' or reason in ('paused', 'quiet_hours') group by lane) h
	  on h.lane = d.lane
	order by 1`

// oldest finds the oldest message of each group that Present counts.
const oldest = `
	select d.waits_for, d.reason, coalesce(least(d.send_at,
	  (select m.received_at from dispatcher.messages m where m.seq = d.oldest)), now())
	from (select coalesce(waits_for, '') as waits_for, coalesce(reason, '') as reason,
	    min(seq) filter (where send_at is null) as oldest, min(send_at) as send_at
	  from dispatcher.due where state = 'waiting' group by 1, 2) d
	order by 1, 2`

// Queues counts the messages that have not been sent yet, by lane. Lanes without any are left out.
func (s *Claims) Queues(ctx context.Context) (all []Queue, err error) {
	all, err = rows(ctx, s.db, pgx.RowToStructByPos[Queue], queues)
	return all, wrap("count what waits", err)
}

// recentDead counts by the index of dead records.
const recentDead = `
	select count(*) from dispatcher.messages
	where detail is not null and received_at >= now() - interval '1 day' and seq >= $1`

const openAmbiguities = `select count(*) from dispatcher.ambiguous where next_at is not null`

// statusSettings keep the queries of a status from sequential scans, whatever the statistics say.
const statusSettings = `
	select set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`

// Recent counts what the channels did within the last minutes, by the database's clock, and what
// waits now. It may be called every few seconds, however large the ledger is: it reads the newest
// mostRecent messages at most, the newest block ranges of the attempts, and small tables. Carried
// has the messages that were planned under the given version of the routing or a later one.
func (s *Reports) Recent(
	ctx context.Context, within time.Duration, version int64,
) (r Recent, err error) {
	low, asked, err := s.recently(ctx, within, &r)
	if err != nil {
		return r, wrap("read what happened lately", err)
	}
	batch := &pgx.Batch{}
	batch.Queue("begin read only")
	batch.Queue(statusSettings)
	collect(batch, &r.Carried, recentCarried, low, r.Since, version)
	collect(batch, &r.Outcomes, recentOutcomes, r.Since)
	collect(batch, &r.Queues, queues)
	collect(batch, &r.Oldest, oldest)
	batch.Queue(recentDead, (DayAt(r.Now) - 1).first()).QueryRow(func(row pgx.Row) error {
		return row.Scan(&r.Dead)
	})
	batch.Queue(openAmbiguities).QueryRow(func(row pgx.Row) error { return row.Scan(&r.Ambiguous) })
	if low > asked { // there are more than mostRecent messages
		batch.Queue(recentSince, low).QueryRow(func(row pgx.Row) error {
			var first time.Time
			err := row.Scan(&first)
			if first.After(r.Since) {
				r.Since = first.UTC()
			}
			return err
		})
	}
	batch.Queue("commit")
	err = s.reports.SendBatch(ctx, batch).Close()
	return r, wrap("read what happened lately", err)
}

// recently sets Now and Since, and returns the number above which the messages of the period are
// read, and the one that the whole period begins at.
func (s *Reports) recently(
	ctx context.Context, within time.Duration, r *Recent,
) (low, asked int64, err error) {
	var newest int64
	yesterday := (DayAt(time.Now()) - 1).first() // this clock may be wrong by some hours
	if err := s.reports.QueryRow(ctx, newestSeq, yesterday).Scan(&r.Now, &newest); err != nil {
		return 0, 0, err
	}
	r.Now = r.Now.UTC()
	r.Since = r.Now.Add(-within)
	asked, _, err = s.seek(ctx, r.Since)
	return max(asked, newest-mostRecent), asked, err
}

// CarriedLately is Recent with nothing but Carried. It costs a third of a second at most.
func (s *Reports) CarriedLately(
	ctx context.Context, within time.Duration, version int64,
) (all []RecentCarried, err error) {
	var r Recent
	low, _, err := s.recently(ctx, within, &r)
	if err != nil {
		return nil, wrap("read what was carried lately", err)
	}
	batch := &pgx.Batch{}
	batch.Queue("begin read only")
	batch.Queue(statusSettings)
	collect(batch, &all, recentCarried, low, r.Since, version)
	batch.Queue("commit")
	err = s.reports.SendBatch(ctx, batch).Close()
	return all, wrap("read what was carried lately", err)
}

// collect adds a query whose columns are the fields of T, in order.
func collect[T any](batch *pgx.Batch, into *[]T, sql string, args ...any) {
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[T])
		return err
	})
}
