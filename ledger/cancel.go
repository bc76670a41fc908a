package ledger

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// ReasonCancelled is the reason of a failed message that an operator, or a service on the control
// topic, cancelled.
const ReasonCancelled = "cancelled"

// Cancellations ends messages that have not left.
type Cancellations struct{ *db }

// UnsentFilter selects messages that have not left: those that are scheduled, wait, or are to be
// tried again. The zero value selects all of them.
type UnsentFilter struct {
	Lane, Route, Tenant string // empty means any
	// Since and Before bound when a message was stored: at Since or later, and earlier than Before.
	// Zero means any time.
	Since, Before time.Time
}

// UnsentMessage is a message that has not left.
type UnsentMessage struct {
	Seq      int64
	ID       string
	Envelope []byte // as the producer sent it; nil where it was not asked for
}

// UnsentPage are messages that a filter finds, in the order of Seq. A page may be empty although
// others follow.
type UnsentPage struct {
	Messages []UnsentMessage
	// Last is the Seq with which the page ends. More says that others may follow.
	Last int64
	More bool
}

// unsentLook is how many rows of dispatcher.due a page reads. It bounds the time of a page for any
// filter, even for one that finds few messages among millions.
const unsentLook = 5000

// selectUnsent reads the messages that a filter finds among the next rows of due, and returns at
// least one row. due holds the messages that have not left, and accepted ones that wait for a
// receipt. The offsets make the planner read each message by its number, and not all days. @end
// does not bound looked, because the planner expects few rows between two bounds and would sort
// them.
const selectUnsent = `
	with looked as materialized (
	  select seq, lane, tenant, state from dispatcher.due
	  where seq > @after order by seq limit @look
	), found as (
	  select m.seq, m.id, case when @envelopes then p.envelope end as envelope
	  from looked d
	  cross join lateral (select * from dispatcher.messages m where m.seq = d.seq offset 0) m
	  left join lateral (select envelope from dispatcher.payloads p where p.seq = d.seq offset 0) p
	    on @envelopes
	  where d.seq < @end and d.state in ('scheduled', 'waiting', 'retry')
	    and (@lane = '' or d.lane = @lane) and (@tenant = '' or d.tenant = @tenant)
	    and (@route = '' or m.route = @route)
	    and (@since::timestamptz is null or m.received_at >= @since)
	    and (@before::timestamptz is null or m.received_at < @before)
	  order by d.seq limit @limit
	)
	select l.looked, coalesce(l.last, @after), coalesce(f.seq, 0), coalesce(f.id, ''), f.envelope
	from (select count(*) as looked, max(seq) as last from looked) l left join found f on true
	order by f.seq`

// Unsent reads the next messages that the filter finds, limit at most, with a Seq above after. With
// envelopes, each has its Envelope.
func (s *Cancellations) Unsent(
	ctx context.Context, f *UnsentFilter, after int64, limit int, envelopes bool,
) (UnsentPage, error) {
	var page UnsentPage
	var looked int
	found, err := rows(ctx, s.db, func(r pgx.CollectableRow) (m UnsentMessage, err error) {
		err = r.Scan(&looked, &page.Last, &m.Seq, &m.ID, &m.Envelope)
		return m, err
	}, selectUnsent, f.arguments(after, limit, envelopes))
	if err != nil {
		return page, wrap("list messages that have not left", err)
	}
	page.More = looked == unsentLook && page.Last < f.end()
	if found[0].Seq == 0 {
		found = nil
	}
	if len(found) > limit {
		found = found[:limit]
		page.Last, page.More = found[limit-1].Seq, true
	}
	page.Messages = found
	return page, nil
}

// arguments makes selectUnsent read one message more than limit, which shows whether others follow.
func (f *UnsentFilter) arguments(after int64, limit int, envelopes bool) pgx.NamedArgs {
	return pgx.NamedArgs{
		"lane": f.Lane, "route": f.Route, "tenant": f.Tenant, "since": instant(f.Since),
		"before": instant(f.Before), "after": max(after, f.begin()), "end": f.end(), "limit": limit + 1,
		"envelopes": envelopes, "look": unsentLook,
	}
}

// begin and end bound the Seq of all messages that were stored in the time of the filter. A message
// may be stored on the day before or after that of its time, within disorder.
func (f *UnsentFilter) begin() int64 {
	if f.Since.IsZero() {
		return 0
	}
	return DayAt(f.Since.Add(-disorder)).first() - 1
}

func (f *UnsentFilter) end() int64 {
	if f.Before.IsZero() {
		return math.MaxInt64
	}
	return (DayAt(f.Before.Add(disorder)) + 1).first()
}

// Cancellation ends a message that has not been sent.
type Cancellation struct {
	Seq int64
	// State and Attempts are those that the caller read and composed Notice for.
	State    State
	Attempts int
	Notice   Notice
}

// Canceller says who ends messages, why, and how the request came in.
type Canceller struct {
	Author, Reason string
	Via            Via
}

// cancelNames are the parameters of cancelMessages.
var cancelNames = []string{
	"seqs", "states", "attempts", "notice_keys", "notice_values", "author", "why", "via",
}

// cancelMessages ends those locked messages that have not changed since the caller read them, and
// that no provider took or may have taken. A claim that locked a message first has made it sending
// by now; a later claim no longer finds it due.
var cancelMessages = ofDay(named(cancelNames, `
	with given as (
	  select * from unnest(@seqs::bigint[], @states::text[], @attempts::smallint[],
	    @notice_keys::text[], @notice_values::bytea[])
	    as u(seq, state, attempts, notice_key, notice_value)
	), ended as (
	  update dispatcher.messages m set state = 'failed', reason = 'cancelled', next_at = null,
	    finished_at = now()
	  from given g where m.seq = g.seq and m.state = g.state and m.attempts = g.attempts
	    and m.state in ('scheduled', 'waiting', 'retry') and m.same_key is null
	    and m.parts_cut is null and m.parts_left is null
	    and not exists (select from dispatcher.attempts a where a.message_seq = m.seq
	      and coalesce(a.outcome, 'unknown') in ('unknown', 'accepted'))
	  returning m.seq, m.id, g.notice_key, g.notice_value
	), told as (
	  insert into dispatcher.outbox (kind, keys, "values")
	  select 'status', array_agg(notice_key order by seq), array_agg(notice_value order by seq)
	  from ended having count(*) > 0
	), noted as (
	  insert into dispatcher.operator_actions (author, reason, action, subject, via)
	  select @author, @why, 'cancel', id, @via from ended order by seq
	)
	select seq from ended`))

// lockMessages locks messages of a day in their order.
var lockMessages = ofDay(`
	select from dispatcher.messages where seq = any($1) order by seq for update`)

// Cancel ends messages, those of a day in one transaction, and returns the Seq of those that it
// ended. A message that has changed since the caller read it is left as it is, and so is one that a
// provider took or may have taken. Cancel waits for claims and settlements that have a message
// locked. Without messages to end it waits until what the caller has read is durable: a claim or a
// settlement that shows why a message cannot be cancelled may still be lost.
func (s *Cancellations) Cancel(
	ctx context.Context, by Canceller, all []Cancellation,
) (ended map[int64]bool, err error) {
	slices.SortFunc(all, func(a, b Cancellation) int { return cmp.Compare(a.Seq, b.Seq) })
	ended = map[int64]bool{}
	if len(all) == 0 {
		_, err = s.hot.Exec(ctx, replicationBarrier)
	}
	eachDay(len(all), func(i int) int64 { return all[i].Seq }, func(day Day, from, to int) {
		if err == nil {
			err = s.cancelOfDay(ctx, by, day, all[from:to], ended)
		}
	})
	return ended, wrap("cancel messages", err)
}

// cancelOfDay ends messages of a day, and adds their Seq to ended.
func (s *Cancellations) cancelOfDay(
	ctx context.Context, by Canceller, day Day, some []Cancellation, ended map[int64]bool,
) error {
	n := len(some)
	seqs, states, attempts := make([]int64, n), make([]string, n), make([]int16, n)
	keys, values := make([]string, n), make([][]byte, n)
	for i := range some {
		c := &some[i]
		seqs[i], states[i], attempts[i] = c.Seq, string(c.State), int16(c.Attempts) //nolint:gosec // A smallint.
		keys[i], values[i] = c.Notice.Key, c.Notice.Value
	}
	batch := &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue(lockMessages.on(day), seqs)
	var done []int64
	batch.Queue(cancelMessages.on(day), seqs, states, attempts, keys, values, storable(by.Author),
		storable(by.Reason), string(by.Via)).Query(func(r pgx.Rows) (err error) {
		done, err = pgx.CollectRows(r, pgx.RowTo[int64])
		return err
	})
	batch.Queue("commit")
	if err := s.hot.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	for _, seq := range done {
		ended[seq] = true
	}
	return nil
}
