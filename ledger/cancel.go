package ledger

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// ReasonCancelled is the reason of a failed message that an operator cancelled.
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

// selectUnsent reads the messages that a filter finds after one of them. Only those that have not
// left are in due, besides accepted ones that wait for a receipt. The offsets make the planner read
// each message by its number, and not all days.
const selectUnsent = `
	select m.seq, m.id, case when @envelopes then p.envelope end
	from dispatcher.due d
	cross join lateral (select * from dispatcher.messages m where m.seq = d.seq offset 0) m
	left join lateral (select envelope from dispatcher.payloads p where p.seq = d.seq offset 0) p
	  on @envelopes
	where d.seq > @after and d.state in ('scheduled', 'waiting', 'retry')
	  and (@lane = '' or d.lane = @lane) and (@tenant = '' or d.tenant = @tenant)
	  and (@route = '' or m.route = @route)
	  and (@since::timestamptz is null or m.received_at >= @since)
	  and (@before::timestamptz is null or m.received_at < @before)
	order by d.seq limit @limit`

// Unsent lists the messages that a filter finds, in the order of Seq, after the message with that
// Seq and limit at most. With envelopes, each has its Envelope.
func (s *Cancellations) Unsent(
	ctx context.Context, f *UnsentFilter, after int64, limit int, envelopes bool,
) ([]UnsentMessage, error) {
	found, err := rows(ctx, s.db, pgx.RowToStructByPos[UnsentMessage], selectUnsent,
		pgx.NamedArgs{
			"lane": f.Lane, "route": f.Route, "tenant": f.Tenant, "since": instant(f.Since),
			"before": instant(f.Before), "after": after, "limit": limit, "envelopes": envelopes,
		})
	return found, wrap("list messages that have not left", err)
}

// Cancellation ends a message that has not been sent.
type Cancellation struct {
	Seq int64
	// State and Attempts are those that the caller read and composed Notice for.
	State    State
	Attempts int
	Notice   Notice
}

// Canceller is who ends messages, why, and how that came in.
type Canceller struct {
	Author, Reason string
	Via            Via
}

// cancelNames are the parameters of cancelMessages.
var cancelNames = []string{
	"seqs", "states", "attempts", "notice_keys", "notice_values", "author", "why", "via",
}

// cancelMessages ends the locked messages that are as the caller read them, and of which no attempt
// was or may have been taken. A claim that locked a message first has made it sending by now; a
// later claim does not find it due any more.
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
// ended. A message that has changed since the caller read it is left as it is, and so is one of
// which an attempt was or may have been taken. Cancel waits for claims and settlements that have a
// message locked.
func (s *Cancellations) Cancel(
	ctx context.Context, by Canceller, all []Cancellation,
) (ended map[int64]bool, err error) {
	slices.SortFunc(all, func(a, b Cancellation) int { return cmp.Compare(a.Seq, b.Seq) })
	ended = map[int64]bool{}
	eachDay(len(all), func(i int) int64 { return all[i].Seq }, func(day Day, from, to int) {
		if err == nil {
			err = s.cancelOfDay(ctx, by, day, all[from:to], ended)
		}
	})
	return ended, wrap("cancel messages", err)
}

// cancelOfDay ends messages of a day, and adds those that it ended to ended.
func (s *Cancellations) cancelOfDay(
	ctx context.Context, by Canceller, day Day, some []Cancellation, ended map[int64]bool,
) error {
	n := len(some)
	seqs, states, attempts := make([]int64, n), make([]string, n), make([]int16, n)
	keys, values := make([]string, n), make([][]byte, n)
	for i := range some {
		c := &some[i]
		seqs[i], states[i], attempts[i] = c.Seq, string(c.State), int16(c.Attempts) //nolint:gosec // The column is a smallint.
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

// Later stores the cancellation of a message that is not in the ledger yet. The claim that stores
// the message ends it. The same id again changes nothing. A claim that was under way may have
// stored the message without seeing this, so the caller calls Arrived afterwards.
func (s *Cancellations) Later(ctx context.Context, id string, by Canceller) error {
	_, err := s.hot.Exec(ctx, `
		insert into dispatcher.pending_cancellations (id, author, reason, via)
		values ($1, $2, $3, $4) on conflict (id) do nothing`,
		id, storable(by.Author), storable(by.Reason), string(by.Via))
	return wrap("store a cancellation", err)
}

// PendingCancellation is one that Later has stored.
type PendingCancellation struct {
	ID string // of the message
	Canceller
}

// Arrived lists pending cancellations of the last hour whose message is in the ledger by now, the
// latest first: it was stored by a claim that began before the cancellation was.
func (s *Cancellations) Arrived(ctx context.Context) ([]PendingCancellation, error) {
	found, err := rows(ctx, s.db, func(r pgx.CollectableRow) (p PendingCancellation, err error) {
		err = r.Scan(&p.ID, &p.Author, &p.Reason, &p.Via)
		return p, err
	}, `
		select id, author, reason, via from dispatcher.pending_cancellations p
		where at > now() - interval '1 hour'
		  and exists (select from facts.ids i where i.id = p.id)
		order by at desc limit 100`)
	return found, wrap("list pending cancellations", err)
}

// Forget removes the pending cancellation of a message.
func (s *Cancellations) Forget(ctx context.Context, id string) error {
	_, err := s.hot.Exec(ctx, `delete from dispatcher.pending_cancellations where id = $1`, id)
	return wrap("remove a pending cancellation", err)
}

// selectPending finds the cancellations of new messages.
const selectPending = `select id from dispatcher.pending_cancellations where id = any($1)`

// carryOut removes the pending cancellations of the messages in $1. Those of the messages in $2,
// which are ended, go to the record of what operators did.
const carryOut = `
	with gone as (
	  delete from dispatcher.pending_cancellations where id = any($1)
	  returning id, author, reason, via
	)
	insert into dispatcher.operator_actions (author, reason, action, subject, via)
	select author, reason, 'cancel', id, via from gone where id = any($2)`

// askPending is a round trip of its own.
func (t *Tx) askPending(ctx context.Context) error {
	return t.readPending(t.conn.Query(ctx, selectPending, t.ids()))
}

// readPending marks the new messages whose cancellation came before them. Intakes are known.
func (t *Tx) readPending(rows pgx.Rows, err error) error {
	if err != nil {
		return err
	}
	pending, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(pending) == 0 {
		return err
	}
	t.seen.Withdrawn = map[int]bool{}
	for at := range t.request.Messages {
		if t.seen.Intakes[at] == Fresh && slices.Contains(pending, t.request.Messages[at].ID) {
			t.seen.Withdrawn[at] = true
		}
	}
	return nil
}

// carriedOut are the ids of the withdrawn messages, and of those that the decisions end for that.
// The others ended before: they are dead or rejected.
func (t *Tx) carriedOut() (withdrawn, ended []string) {
	ended = []string{}
	for at := range t.seen.Withdrawn {
		id := t.seen.Messages[at].ID
		withdrawn = append(withdrawn, id)
		if d := &t.decisions.Each[at]; d.State == Failed && d.Reason == ReasonCancelled {
			ended = append(ended, id)
		}
	}
	return withdrawn, ended
}
