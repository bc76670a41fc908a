package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// doubted writes down what a batch of settlements says about doubts. It goes with them in one
// transaction, after them, and only when there is something to write.
//
//   - repeated keeps the key under which a message is submitted again, or forgets it.
//   - opened begins a doubt, or goes on with it when an attempt under the same key got no answer either. It
//     looks whether the attempt is unknown: a settlement that comes twice or late opens nothing.
//   - the end takes the price off attempts that turned out to be the same submission as a later one that
//     was answered: the provider bills it once, also if a receipt has proved the earlier one meanwhile.
const doubted = `
	with given as (
	  select * from unnest($1::bigint[], $2::smallint[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[], $8::boolean[])
	    as u(seq, attempt, key, step, until, next_at, verdict, repeat)
	), repeated as (
	  update dispatcher.messages m set same_key = case when g.repeat then g.key end, same_key_until = case when g.repeat then g.until end
	  from given g where m.seq = g.seq and m.attempts = g.attempt and (m.same_key is not null or g.repeat)
	), opened as (
	  insert into dispatcher.ambiguous as d (message_seq, key, attempt, last, step, until, next_at, closed_at, verdict)
	  select g.seq, g.key, g.attempt, g.attempt, g.step, g.until, case when g.verdict = '' then g.next_at end,
	    case when g.verdict <> '' then now() end, nullif(g.verdict, '')
	  from given g join dispatcher.attempts a on a.message_seq = g.seq and a.attempt = g.attempt
	  where g.step <> '' and (a.outcome = 'unknown' or g.repeat
	    or exists (select from dispatcher.ambiguous e where e.message_seq = g.seq and e.key = g.key))
	  on conflict (message_seq, key) do update set last = excluded.last, step = excluded.step, next_at = excluded.next_at,
	    closed_at = excluded.closed_at, verdict = excluded.verdict, asked = d.asked + 1
	  where d.closed_at is null and excluded.last > d.last
	  returning d.message_seq, d.attempt, d.last, d.verdict
	)
	update dispatcher.attempts a set price_micros = 0, segments = 0
	from opened o where a.message_seq = o.message_seq and a.attempt >= o.attempt and a.attempt < o.last
	  and a.outcome in ('unknown', 'accepted') and o.verdict in ('taken', 'not_taken')`

// doubtArrays are the parameters of doubted; nil when no settlement says anything about a doubt.
func doubtArrays(order []*Settlement) []any {
	var seq []int64
	var attempt []int16
	var key, step, verdict []string
	var until, next []pgtype.Timestamptz
	var repeat []bool
	for _, s := range order {
		d := s.Doubt
		if d == nil {
			continue
		}
		seq, attempt = append(seq, s.Seq), append(attempt, int16(s.Attempt)) //nolint:gosec // The column is a smallint.
		key, step, verdict = append(key, d.Key), append(step, string(d.Step)), append(verdict, string(d.Verdict))
		until, next = append(until, instant(d.Until)), append(next, instant(d.NextAt))
		repeat = append(repeat, d.Step == SameKey && d.Verdict == "" && s.State == Retry)
	}
	if seq == nil {
		return nil
	}
	return []any{seq, attempt, key, step, until, next, verdict, repeat}
}

// doubtColumns are the columns of a doubt d about attempt a of message m, for scanDoubt.
const doubtColumns = messageColumns + `, a.attempt, a.channel, a.reason, a.segments, a.price_micros, a.currency,
	  d.key, d.step, d.until, d.last, d.opened_at, d.asked`

// dueDoubts closes the doubts that an answer has ended meanwhile, and leases the others that are due: nobody
// else gets them before the lease is over.
const dueDoubts = `
	with due as materialized (
	  select d.message_seq, d.key, a.outcome from dispatcher.ambiguous d
	  join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.attempt
	  where d.next_at <= now() order by d.next_at limit $1 for update of d skip locked
	), answered as (
	  update dispatcher.ambiguous d set closed_at = now(), next_at = null,
	    verdict = case when u.outcome = 'accepted' then 'taken' else 'not_taken' end
	  from due u where d.message_seq = u.message_seq and d.key = u.key and u.outcome <> 'unknown'
	), leased as (
	  update dispatcher.ambiguous d set next_at = now() + $2::interval, asked = least(d.asked + 1, 32000)
	  from due u where d.message_seq = u.message_seq and d.key = u.key and u.outcome = 'unknown'
	  returning d.*
	)
	select ` + doubtColumns + `
	from leased d join dispatcher.messages m on m.seq = d.message_seq
	join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.attempt
	order by d.opened_at`

// Doubts picks up to limit open doubts that are due and keeps others from them for the lease. A doubt
// that has been answered meanwhile, late or by a receipt, is closed and not returned.
func (l *Ledger) Doubts(ctx context.Context, limit int, lease time.Duration) ([]OpenDoubt, error) {
	r, err := l.hot.Query(ctx, dueDoubts, limit, lease)
	if err != nil {
		return nil, wrap("look for doubts", err)
	}
	doubts, err := pgx.CollectRows(r, scanDoubt)
	return doubts, wrap("look for doubts", err)
}

func scanDoubt(r pgx.CollectableRow) (OpenDoubt, error) {
	var d OpenDoubt
	var m messageRow
	a := &d.Attempt
	err := r.Scan(append(m.targets(), &a.Number, &a.Channel, &a.Reason, &a.Segments, &a.PriceMicros, &a.Currency,
		&d.Key, &d.Step, &d.Until, &d.Last, &d.OpenedAt, &d.Asked)...)
	d.Message = m.message()
	d.Until, d.OpenedAt = d.Until.UTC(), d.OpenedAt.UTC()
	return d, err
}

// DoubtAbout is the latest doubt about a message of which nobody knows whether it was taken: an open one, or one
// that ended without anybody knowing. It returns ErrNoDoubt when there is none.
func (l *Ledger) DoubtAbout(ctx context.Context, id string) (OpenDoubt, error) {
	r, err := l.reports.Query(ctx, `
		select `+doubtColumns+`
		from dispatcher.messages m join dispatcher.ambiguous d on d.message_seq = m.seq
		join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.attempt
		where m.id = $1 and a.outcome = 'unknown' order by d.last desc limit 1`, id)
	if err != nil {
		return OpenDoubt{}, wrap("look for a doubt", err)
	}
	d, err := pgx.CollectExactlyOneRow(r, scanDoubt)
	if errors.Is(err, pgx.ErrNoRows) {
		return OpenDoubt{}, ErrNoDoubt
	}
	return d, wrap("look for a doubt", err)
}

// ErrNoDoubt means that what became of a message is known, or that there is no such message.
var ErrNoDoubt = errors.New("there is no doubt about this message")

// PutOff sets when a doubt is looked at again, unless it has been closed.
func (l *Ledger) PutOff(ctx context.Context, seq int64, key string, until time.Time) error {
	_, err := l.hot.Exec(ctx, `
		update dispatcher.ambiguous set next_at = $3 where message_seq = $1 and key = $2 and closed_at is null`, seq, key, until)
	return wrap("put off a doubt", err)
}

// judged closes a doubt, also one that was closed without knowing, and takes its message on where no settlement can:
// the attempt stays unknown. The message is locked before the doubt, as by a settlement.
const judged = `
	with held as materialized (
	  select seq from dispatcher.messages where seq = $1 for update
	), closed as (
	  update dispatcher.ambiguous set closed_at = now(), next_at = null, verdict = $3, author = $4, note = $5
	  where message_seq in (select seq from held) and key = $2 and coalesce(verdict, 'final') in ('final', 'resent')
	  returning message_seq, last
	), moved as (
	  update dispatcher.messages m set state = $6, reason = nullif($7, ''),
	    next_at = case when $6 = 'retry' then now() end, finished_at = case when $6 = 'unknown' then coalesce(m.finished_at, now()) end,
	    possible_duplicate = m.possible_duplicate or $8, same_key = null, same_key_until = null, pinned = null,
	    tried = case when $9 then array_append(m.tried, a.channel) else m.tried end
	  from closed c join dispatcher.attempts a on a.message_seq = c.message_seq and a.attempt = c.last
	  where m.seq = c.message_seq and m.attempts = c.last and m.state in ('unknown', 'retry', 'waiting') and $6 <> ''
	  returning m.seq
	), told as (
	  insert into dispatcher.outbox (kind, keys, "values")
	  select 'status', array[$10::text], array[$11::bytea] from moved where $11::bytea is not null
	)
	select count(*) from closed`

// Judge ends a doubt, and says whether there was one to end: a doubt that somebody else has ended with
// certainty is left as it is. It is one transaction.
func (l *Ledger) Judge(ctx context.Context, j *Judgement) (ended bool, err error) {
	tx, err := l.hot.Begin(ctx)
	if err != nil {
		return false, wrap("judge a doubt", err)
	}
	defer tx.Rollback(ctx) //nolint:errcheck // After a commit it does nothing.
	s := &j.Settlement
	state, key, value := "", "", []byte(nil)
	if j.Verdict == Resent || j.Verdict == FinalWord {
		state = string(s.State)
		if s.Notice != nil {
			key, value = s.Notice.Key, s.Notice.Value
		}
	} else if err := settleIn(ctx, tx, bySeq([]Settlement{*s})); err != nil {
		return false, wrap("judge a doubt", err)
	}
	var closed int
	err = tx.QueryRow(ctx, judged, j.Seq, j.Key, string(j.Verdict), storable(j.Author), storable(j.Note),
		state, storable(s.Reason), s.PossibleDuplicate, s.Tried, key, value).Scan(&closed)
	if err != nil {
		return false, wrap("judge a doubt", err)
	}
	if closed == 0 {
		return false, nil
	}
	return true, wrap("judge a doubt", tx.Commit(ctx))
}

// AllDoubts lists doubts for people, oldest first: those that are open, and with final also those that ended
// without anybody knowing.
func (l *Ledger) AllDoubts(ctx context.Context, final bool, limit int) ([]DoubtRecord, error) {
	return rows(ctx, l, scanDoubtRecord, fmt.Sprintf(`
		select m.id, m.lane, m.tenant, a.channel, d.attempt, a.segments, a.price_micros, a.currency, coalesce(a.provider_code, ''),
		  d.step, d.opened_at, d.until, d.asked, coalesce(d.verdict, ''), d.author, d.note
		from dispatcher.ambiguous d join dispatcher.messages m on m.seq = d.message_seq
		join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.attempt
		where a.outcome = 'unknown' and (d.next_at is not null%s) order by d.opened_at limit $1`,
		map[bool]string{true: " or d.verdict in ('final', 'resent')"}[final]), limit)
}

func scanDoubtRecord(r pgx.CollectableRow) (d DoubtRecord, err error) {
	err = r.Scan(&d.ID, &d.Lane, &d.Tenant, &d.Channel, &d.Attempt, &d.Segments, &d.PriceMicros, &d.Currency, &d.Code,
		&d.Step, &d.OpenedAt, &d.Until, &d.Asked, &d.Verdict, &d.Author, &d.Note)
	d.OpenedAt, d.Until = d.OpenedAt.UTC(), d.Until.UTC()
	return d, err
}
