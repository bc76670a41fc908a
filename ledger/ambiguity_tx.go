package ledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// recordAmbiguities stores what a batch of settlements says about ambiguities. It runs after them
// in the same transaction, and only when there is something to store; lockRepeated runs before
// them.
//
//   - "repeated" stores the key under which a message is submitted again, or removes it. It skips
//     attempts that were settled before, because the search may have ended since. It also skips
//     messages that another transaction has locked: the settlement did not move them, or it would
//     hold these locks itself, and once it has locked channels it must not wait for a message.
//   - "opened" begins an ambiguity, or continues it when an attempt under the same key was settled.
//     It checks that the attempt is unknown, so that a repeated or late settlement opens nothing.
//   - The last statement moves the price of a submission to the latest attempt under its key,
//     because the provider bills it once. An accepted attempt keeps its price when a later attempt
//     under the key was rejected.
var recordAmbiguities = ofDay(named(ambiguityNames, `
	with given as (
	  select * from unnest(@seqs::bigint[], @attempts::smallint[], @keys::text[], @accounts::text[],
	    @steps::text[], @untils::timestamptz[], @next_ats::timestamptz[], @verdicts::text[],
	    @repeats::boolean[], @partly::boolean[])
	    as u(seq, attempt, key, account, step, until, next_at, verdict, repeat, partly)
	), mine as materialized (
	  select g.* from given g join dispatcher.messages m on m.seq = g.seq and m.attempts = g.attempt
	  where (m.same_key is not null or g.repeat) and not exists (
	    select from dispatcher.ambiguous e where e.message_seq = g.seq and e.key = g.key
	      and (e.closed_at is not null or e.last >= g.attempt))
	  for update of m skip locked
	), repeated as (
	  update dispatcher.messages m set same_key = case when g.repeat then g.key end,
	    same_key_until = case when g.repeat then g.until end,
	      same_key_account = case when g.repeat then g.account end
	  from mine g where m.seq = g.seq
	), opened as (
	  insert into dispatcher.ambiguous as d (message_seq, key, attempt, last, account, step, until,
	    next_at, closed_at, verdict, part_taken)
	  select g.seq, g.key, g.attempt, g.attempt, g.account, g.step, g.until,
	    case when g.verdict = '' then g.next_at end,
	    case when g.verdict <> '' then now() end, nullif(g.verdict, ''), g.partly
	  from given g join dispatcher.attempts a on a.message_seq = g.seq and a.attempt = g.attempt
	  where a.outcome = 'unknown' or exists (select from dispatcher.ambiguous e
	    where e.message_seq = g.seq and e.key = g.key)
	  on conflict (message_seq, key) do update set last = excluded.last, step = excluded.step,
	    next_at = excluded.next_at,
	    closed_at = excluded.closed_at, verdict = excluded.verdict, asked = d.asked + 1,
	    part_taken = d.part_taken or excluded.part_taken
	  where d.closed_at is null and excluded.last > d.last
	  returning d.message_seq, d.attempt, d.last, d.verdict
	)
	update dispatcher.attempts a set price_micros = 0, segments = 0
	from opened o where a.message_seq = o.message_seq and a.attempt >= o.attempt
	  and a.attempt < o.last
	  and (a.outcome = 'unknown'
	    or a.outcome = 'accepted' and o.verdict is distinct from 'not_taken')`))

// ambiguityNames are the parameters from ambiguityArrays.
var ambiguityNames = []string{
	"seqs", "attempts", "keys", "accounts", "steps", "untils", "next_ats", "verdicts", "repeats",
	"partly",
}

// ambiguityArrays are the parameters of recordAmbiguities; nil when no settlement says anything
// about an ambiguity.
func ambiguityArrays(order []settling) []any {
	var seq []int64
	var attempt []int16
	var key, account, step, verdict []string
	var until, next []pgtype.Timestamptz
	var repeat, partly []bool
	for _, s := range order {
		a := s.Ambiguity
		if a == nil {
			continue
		}
		seq, attempt = append(seq, s.Seq), append(attempt, int16(s.Attempt)) //nolint:gosec // A smallint.
		key, account = append(key, a.Key), append(account, a.Account)
		step, verdict = append(step, string(a.Step)), append(verdict, string(a.ResolvedAs))
		until, next = append(until, instant(a.Until)), append(next, instant(a.NextAt))
		repeat = append(repeat, a.Step == SameKey && a.ResolvedAs == "" && s.State == Retry)
		partly = append(partly, a.Partly)
	}
	if seq == nil {
		return nil
	}
	return []any{seq, attempt, key, account, step, until, next, verdict, repeat, partly}
}

// lockRepeated locks the attempts that are settled, in their order, and the earlier attempts of
// their messages where one of these may have been unknown. Otherwise recordAmbiguities, which sets
// their price to 0, and "others" in settle would lock them out of order.
var lockRepeated = ofDay(`
	select from unnest($1::bigint[], $2::smallint[], $3::boolean[]) as g(seq, attempt, after)
	join dispatcher.attempts a on a.message_seq = g.seq and a.attempt <= g.attempt
	  and (a.attempt = g.attempt or g.after)
	order by a.message_seq, a.attempt for update of a`)

// afterUnknown reports whether the attempt may follow one that was unknown.
func (s *Settlement) afterUnknown() bool {
	return s.Attempt > 1 && (s.Ambiguity != nil || s.State == Unknown || s.PossibleDuplicate)
}

// repeatArrays are the parameters of lockRepeated; nil when no settlement follows an unknown
// attempt.
func repeatArrays(order []settling) []any {
	if !slices.ContainsFunc(order, func(s settling) bool { return s.afterUnknown() }) {
		return nil
	}
	seq, attempt, after := make([]int64, len(order)), make([]int16, len(order)),
		make([]bool, len(order))
	for i, s := range order {
		seq[i], attempt[i], after[i] = s.Seq, int16(s.Attempt), s.afterUnknown() //nolint:gosec // A smallint.
	}
	return []any{seq, attempt, after}
}

// ambiguityColumns are the columns that scanAmbiguity reads: of ambiguity d, its first attempt f,
// its latest attempt a, and message m.
const ambiguityColumns = messageColumns + `, p.envelope,
	  a.attempt, a.channel, a.reason, a.segments, a.price_micros, a.currency,
	  d.key, d.account, d.step, d.until, d.attempt, d.opened_at, d.asked,
	  case when a.outcome in ('accepted', 'rejected') then a.outcome
	    else coalesce(f.outcome, 'unknown') end,
	  a.outcome is distinct from 'unknown', coalesce(f.receipt_state, ''),
	  coalesce(a.provider_reference, ''), d.part_taken, coalesce(a.receipts_within, interval '0')`

// leaseAmbiguities leases the ambiguities that are due, and those for which an answer or a receipt
// has come. No other instance gets them before the lease is over. Their attempts are looked up by
// key: a join could read the attempts of all days. A first attempt that was refused or never left
// says nothing about a later one under the same key.
const leaseAmbiguities = `
	with due as materialized (
	  select d.message_seq, d.key from dispatcher.ambiguous d
	  cross join lateral (select f.outcome from dispatcher.attempts f
	    where f.message_seq = d.message_seq and f.attempt = d.attempt limit 1) f
	  cross join lateral (select a.outcome from dispatcher.attempts a
	    where a.message_seq = d.message_seq and a.attempt = d.last limit 1) a
	  where d.next_at is not null and (d.next_at <= now()
	    or f.outcome in ('accepted', 'rejected') or a.outcome in ('accepted', 'rejected')
	      or f.outcome <> 'unknown' and d.last = d.attempt)
	  order by d.next_at limit $1 for update of d skip locked
	), leased as (
	  update dispatcher.ambiguous d set next_at = now() + $2::interval,
	    asked = least(d.asked + 1, 32000)
	  from due u where d.message_seq = u.message_seq and d.key = u.key
	  returning d.message_seq, d.key
	)
	select array_agg(message_seq), array_agg(key) from leased`

// readAmbiguities reads ambiguities by their keys, without those that were closed meanwhile. It
// runs after leaseAmbiguities, as a separate statement: that one locks the newest version of an
// ambiguity, but the other rows that it read may be older. Here an ambiguity and its attempts are
// read as of one moment.
const readAmbiguities = `
	select ` + ambiguityColumns + `
	from unnest($1::bigint[], $2::text[]) as n(seq, key)
	join dispatcher.ambiguous d on d.message_seq = n.seq and d.key = n.key
	  and d.closed_at is null
	join dispatcher.messages m on m.seq = d.message_seq
	left join dispatcher.payloads p on p.seq = d.message_seq
	join dispatcher.attempts f on f.message_seq = d.message_seq and f.attempt = d.attempt
	join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.last
	order by d.opened_at`

// Due returns up to limit open ambiguities that are due, or that an answer or a receipt has come
// for. It leases them: no other instance gets them before lease is over.
func (s *Ambiguities) Due(
	ctx context.Context, limit int, lease time.Duration,
) ([]OpenAmbiguity, error) {
	var seqs []int64
	var keys []string
	if err := s.hot.QueryRow(ctx, leaseAmbiguities, limit, lease).Scan(&seqs, &keys); err != nil ||
		seqs == nil {
		return nil, wrap("look for ambiguities", err)
	}
	r, err := s.hot.Query(ctx, readAmbiguities, seqs, keys)
	if err != nil {
		return nil, wrap("look for ambiguities", err)
	}
	ambiguities, err := pgx.CollectRows(r, scanAmbiguity)
	return ambiguities, wrap("look for ambiguities", err)
}

func scanAmbiguity(r pgx.CollectableRow) (OpenAmbiguity, error) {
	var o OpenAmbiguity
	var m messageRow
	a := &o.Attempt
	err := r.Scan(append(m.targets(), &m.m.Envelope, &a.Number, &a.Channel, &a.Reason,
		&a.Segments, &a.PriceMicros,
		&a.Currency,
		&o.Key, &o.Account, &o.Step, &o.Until, &o.First, &o.OpenedAt, &o.Asked, &o.Answer,
		&o.Settled, &o.Receipt, &o.Reference, &o.Partly, &o.Await)...)
	o.Message = m.message()
	o.Until, o.OpenedAt = o.Until.UTC(), o.OpenedAt.UTC()
	return o, err
}

// Of returns the latest unresolved ambiguity of a message: an open one, or one that has ended
// although nobody knows whether the message was taken. last selects the one whose latest attempt
// has this number; 0 means any. It returns ErrNotAmbiguous when there is none.
func (s *Ambiguities) Of(ctx context.Context, id string, last int) (OpenAmbiguity, error) {
	r, err := s.reports.Query(ctx, `
		select `+ambiguityColumns+`
		from dispatcher.ambiguous d
		join dispatcher.messages m on m.seq = d.message_seq
		left join dispatcher.payloads p on p.seq = d.message_seq
		join dispatcher.attempts f on f.message_seq = d.message_seq and f.attempt = d.attempt
		join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.last
		where m.seq = dispatcher.seq_of($1) and a.outcome = 'unknown' and $2::int in (0, d.last)
		order by d.last desc limit 1`, id, last)
	if err != nil {
		return OpenAmbiguity{}, wrap("look for an ambiguity", err)
	}
	o, err := pgx.CollectExactlyOneRow(r, scanAmbiguity)
	if errors.Is(err, pgx.ErrNoRows) {
		return OpenAmbiguity{}, ErrNotAmbiguous
	}
	return o, wrap("look for an ambiguity", err)
}

// ErrNotAmbiguous means that the outcome of a message is known, or that there is no such message.
var ErrNotAmbiguous = errors.New("this message is not ambiguous")

// Postpone sets when an open ambiguity is due next. It does nothing when it has been closed.
func (s *Ambiguities) Postpone(ctx context.Context, seq int64, key string, until time.Time) error {
	_, err := s.hot.Exec(ctx, `
		update dispatcher.ambiguous set next_at = $3 where message_seq = $1 and key = $2
		  and closed_at is null`, seq, key, until)
	return wrap("postpone an ambiguity", err)
}

// lockResolved and lockMessage lock the attempts and the message, in the order of settlements and
// receipts. They are separate statements, so that resolveAmbiguity sees what the transactions that
// it waited for have committed. A settlement in the same transaction has locked the attempt
// already. It locks no channel, because the attempt gave back its slot with its first outcome,
// unknown.
var (
	lockResolved = ofDay(`select from dispatcher.attempts where message_seq = $1
		order by attempt for update`)
	lockMessage = ofDay(`select from dispatcher.messages where seq = $1 for update`)
)

// resolveAmbiguity closes an ambiguity, even one that had ended as final or resent, and moves its
// message where no settlement can. Its attempts and its message are locked. While the message is
// being submitted again under the key, nothing is resolved, because that answer may tell whether it
// was taken. Nothing is resolved either when a late answer or a receipt has proved something else
// meanwhile.
var resolveAmbiguity = ofDay(`
	with held as (
	  select seq from dispatcher.messages where seq = @seq and (same_key is distinct from @key
	      or not exists (select from dispatcher.attempts where message_seq = @seq
	        and outcome is null))
	), closed as (
	  update dispatcher.ambiguous d set closed_at = now(), next_at = null, verdict = @verdict,
	    author = @author, via = @via,
	    note = case when d.verdict is null then @note
	      else concat_ws(' ', nullif(@note, ''), format('(before: %s%s)', d.verdict,
	        ', ' || nullif(concat_ws(': ', nullif(concat_ws(' by ', nullif(d.author, ''),
	          nullif(d.via, '')), ''), nullif(d.note, '')), ''))) end
	  from dispatcher.attempts a
	  where d.message_seq in (select seq from held) and d.key = @key
	    and coalesce(d.verdict, 'final') in ('final', 'resent')
	    and a.message_seq = d.message_seq and a.attempt = d.last
	    and case @verdict when 'taken' then a.outcome = 'accepted' when 'not_taken'
	      then a.outcome not in ('unknown', 'accepted') else a.outcome = 'unknown' end
	  returning d.message_seq, d.last, a.channel
	), moved as (
	  update dispatcher.messages m set same_key = null, same_key_until = null,
	    same_key_account = null,
	    state = case when t.moves then @state else m.state end,
	      reason = case when t.moves then nullif(@reason, '') else m.reason end,
	    next_at = case when t.moves then case when @state = 'retry' then now() end
	      when t.free and m.state in ('retry', 'waiting') then now() else m.next_at end,
	    finished_at = case when t.moves
	      then case when @state <> 'retry' then coalesce(m.finished_at, now()) end
	      else m.finished_at end,
	    possible_duplicate = m.possible_duplicate or t.moves and @possible_duplicate,
	      pinned = case when t.moves or t.free then null else m.pinned end,
	    tried = case when t.moves and @tried then array_append(m.tried, t.channel) else m.tried end
	  from (
	    select c.channel, n.seq, n.attempts = c.last and @state <> ''
	      and (n.state in ('unknown', 'retry', 'waiting') or n.state = 'accepted'
	        and @state in ('delivered', 'undelivered')) as moves,
	      -- it was to be submitted again under this key, and may go to any channel now
	      n.same_key = @key and n.parts_left is null as free,
	      n.state <> @state or coalesce(n.reason, '') <> @reason as news
	    from closed c join dispatcher.messages n on n.seq = c.message_seq
	  ) t
	  where m.seq = t.seq and (t.moves or m.same_key = @key)
	  returning t.moves and t.news as tells
	), told as (
	  insert into dispatcher.outbox (kind, keys, "values")
	  select 'status', array[@notice_key::text], array[@notice_value::bytea] from moved where tells
	    and @notice_value::bytea is not null
	)
	select exists (select from closed)`)

// Resolve ends an ambiguity in one transaction, and reports whether it did. An ambiguity that has
// ended with certainty is left as it is, and so is one whose message is being submitted again.
func (s *Ambiguities) Resolve(ctx context.Context, r *Resolution) (ended bool, err error) {
	tx, err := s.hot.Begin(ctx)
	if err != nil {
		return false, wrap("resolve an ambiguity", err)
	}
	defer tx.Rollback(ctx) //nolint:errcheck // After a commit it does nothing.
	closed, err := resolveIn(ctx, tx, r)
	if err != nil || !closed {
		return false, wrap("resolve an ambiguity", err)
	}
	return true, wrap("resolve an ambiguity", tx.Commit(ctx))
}

// resolveIn is the transaction of Resolve.
func resolveIn(ctx context.Context, tx pgx.Tx, r *Resolution) (closed bool, err error) {
	batch, day := &pgx.Batch{}, DayOf(r.Seq)
	if r.Settlement == nil {
		batch.Queue(lockResolved.on(day), r.Seq)
	} else {
		queueAny(batch, day, bySeq([]Settlement{*r.Settlement}), true)
	}
	batch.Queue(lockMessage.on(day), r.Seq)
	batch.Queue(resolveAmbiguity.on(day), resolveArguments(r)).QueryRow(func(row pgx.Row) error {
		return row.Scan(&closed)
	})
	err = tx.SendBatch(ctx, batch).Close() // not in the return statement: it sets closed
	return closed, err
}

// resolveArguments are the parameters of resolveAmbiguity.
func resolveArguments(r *Resolution) pgx.StrictNamedArgs {
	move := r.Move
	if move == nil {
		move = &Move{}
	}
	var key string
	var value []byte
	if move.Notice != nil {
		key, value = move.Notice.Key, move.Notice.Value
	}
	return pgx.StrictNamedArgs{
		"seq": r.Seq, "key": r.Key, "verdict": string(r.As),
		"author": storable(r.Author), "via": string(r.Via), "note": storable(r.Note),
		"state": string(move.State), "reason": storable(move.Reason),
		"possible_duplicate": move.PossibleDuplicate, "tried": move.Tried,
		"notice_key": key, "notice_value": value,
	}
}
