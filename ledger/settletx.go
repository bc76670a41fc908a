package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// settle is one statement, hence atomic in one round trip.
//
//   - done writes the outcomes. An attempt that has one is left alone, except that a
//     truth which comes late replaces unknown. Writing twice has no second effect.
//   - freed gives the active slots back, once for each attempt: answers counts the
//     outcomes written. The channels are locked by name before they are written, as in
//     a claim. active_max sinks with active after it was lowered below it.
//   - moved takes the messages on, if this attempt is still their last one and nobody
//     has taken it on before. A late yes or no also stops a message that waits to be
//     sent once more, and then there will be no duplicate.
//   - the outbox gets the notices of the messages that moved, in the order given: nearly
//     always all of them, which go from the parameters to the row as they are. Its seq
//     is drawn after the rows' locks were taken; see Publish.
//
// A parameter of one element stands for a column of that value, a null one for a column
// of nulls; see brief. The given rows ascend by seq, so that two settlements of the same attempts wait for
// each other and never in a circle.
const settle = `
	with done as (
	  update dispatcher.attempts a set outcome = g.outcome, provider_code = nullif(g.code, ''),
	    provider_reference = nullif(g.reference, ''), segments = g.segments, price_micros = g.price_micros,
	    settled_at = now(), answers = a.answers + 1
	  from (
	    select seq, coalesce(attempt, ($2::smallint[])[1]) as attempt, coalesce(outcome, ($3::text[])[1]) as outcome,
	      coalesce(code, ($4::text[])[1]) as code, reference, coalesce(segments, ($6::smallint[])[1]) as segments,
	      coalesce(price_micros, ($7::bigint[])[1]) as price_micros, coalesce(state, ($8::text[])[1]) as state,
	      coalesce(reason, ($9::text[])[1]) as reason, next_at, coalesce(tried, ($11::boolean[])[1]) as tried,
	      coalesce(pinned, ($12::text[])[1]) as pinned, coalesce(parts_left, ($13::text[])[1]) as parts_left,
	      coalesce(possible_duplicate, ($14::boolean[])[1]) as possible_duplicate, nr
	    from unnest($1::bigint[], $2::smallint[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[],
	      $8::text[], $9::text[], $10::timestamptz[], $11::boolean[], $12::text[], $13::text[], $14::boolean[]) with ordinality
	      as u(seq, attempt, outcome, code, reference, segments, price_micros,
	        state, reason, next_at, tried, pinned, parts_left, possible_duplicate, nr)
	  ) g
	  where a.message_seq = g.seq and a.attempt = g.attempt
	    and (a.outcome is null or (a.outcome = 'unknown' and g.outcome <> 'unknown'))
	  returning a.channel, a.answers, g.seq, g.attempt,
	    g.state, g.reason, g.next_at, g.tried, g.pinned, g.parts_left, g.possible_duplicate, g.nr
	), leaving as (
	  select channel, count(*) as n from done where answers = 1 group by channel
	), locked as materialized (
	  select c.channel from dispatcher.channels c where c.channel in (select channel from leaving)
	  order by c.channel for update
	), freed as (
	  update dispatcher.channels c set active = c.active - l.n,
	    active_max = case when c.configured_max = 0 then 0 else greatest(c.configured_max, c.active - l.n) end
	  from leaving l where c.channel = l.channel and l.channel in (select channel from locked)
	), moved as (
	  update dispatcher.messages m set state = d.state, reason = nullif(d.reason, ''),
	    next_at = case when d.state in ('retry', 'waiting') then coalesce(d.next_at, now()) end,
	    finished_at = case when d.state in ('rejected', 'failed', 'unknown') then now() end,
	    tried = case when d.tried then array_append(m.tried, d.channel) else m.tried end,
	    pinned = nullif(d.pinned, ''), parts_left = nullif(d.parts_left, '')::smallint[],
	    possible_duplicate = case when m.state in ('retry', 'waiting') then false
	      else m.possible_duplicate or d.possible_duplicate end
	  from done d
	  where m.seq = d.seq and m.attempts = d.attempt
	    and (m.state in ('sending', 'unknown')
	      or (m.state in ('retry', 'waiting') and d.answers = 2 and d.state in ('accepted', 'rejected')))
	  returning d.nr
	), told as (
	  select count(*) = cardinality($1::bigint[]) and $17::boolean as everything from moved
	)
	insert into dispatcher.outbox (kind, keys, "values")
	select 'status', $15::text[], $16::bytea[] from told where everything
	union all
	select 'status', array_agg(n.key order by n.nr), array_agg(n.value order by n.nr)
	from told, unnest($15::text[], $16::bytea[]) with ordinality as n(key, value, nr)
	where not everything and n.value <> '' and n.nr in (select nr from moved)
	having count(*) > 0`

// Settle writes down what came of attempts, in one round trip and all or nothing. To
// settle again what was settled has no effect, so a call that failed, in whatever way,
// is simply repeated.
func (l *Ledger) Settle(ctx context.Context, settlements []Settlement) error {
	if len(settlements) == 0 {
		return nil
	}
	for i := range settlements {
		if n := settlements[i].Notice; n != nil && (n.Kind != Status || len(n.Headers) > 0 || len(n.Value) == 0) {
			return fmt.Errorf("settle message %d: the notice is no plain status event", settlements[i].Seq)
		}
	}
	_, err := l.hot.Exec(ctx, settle, settlementArrays(settlements)...)
	return wrap("settle", err)
}

// settlementArrays are the parameters of settle, ascending by message and attempt.
func settlementArrays(settlements []Settlement) []any {
	order := make([]*Settlement, len(settlements))
	for i := range settlements {
		order[i] = &settlements[i]
	}
	slices.SortStableFunc(order, func(a, b *Settlement) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Attempt, b.Attempt))
	})
	n := len(order)
	seq, attempt, outcome := make([]int64, n), make([]int16, n), make([]string, n)
	code, reference, segments, price := make([]string, n), make([]string, n), make([]int16, n), make([]int64, n)
	state, reason := make([]string, n), make([]string, n)
	var next []pgtype.Timestamptz // null unless a row has one
	tried, pinned, left, duplicate := make([]bool, n), make([]string, n), make([]string, n), make([]bool, n)
	notices := newNoticeArrays(n)
	for i, s := range order {
		seq[i], attempt[i], outcome[i] = s.Seq, int16(s.Attempt), s.Outcome.String()
		code[i], reference[i] = storable(s.Code), storable(s.Reference)
		segments[i], price[i] = int16(s.Segments), s.PriceMicros
		state[i], reason[i] = string(s.State), storable(s.Reason)
		if !s.NextAt.IsZero() {
			next = room(next, n)
			next[i] = instant(s.NextAt)
		}
		tried[i], pinned[i], left[i], duplicate[i] = s.Tried, s.Pinned, arrayLiteral(s.PartsLeft), s.PossibleDuplicate
		notices.set(i, s.Notice)
	}
	return append([]any{
		seq, brief(attempt), brief(outcome), brief(code), reference, brief(segments), brief(price),
		brief(state), brief(reason), next, brief(tried), brief(pinned), brief(left), brief(duplicate),
	}, notices.arguments()...)
}

// noticeArrays gathers at most one notice for each row, empty where there is none.
type noticeArrays struct {
	keys     []string
	values   [][]byte
	complete bool // every row has one
}

func newNoticeArrays(n int) noticeArrays {
	return noticeArrays{keys: make([]string, n), values: make([][]byte, n), complete: true}
}

func (a *noticeArrays) set(i int, n *Notice) {
	if n == nil {
		a.values[i], a.complete = []byte{}, false
		return
	}
	a.keys[i], a.values[i] = n.Key, n.Value
}

func (a *noticeArrays) arguments() []any { return []any{a.keys, a.values, a.complete} }

// storable makes a provider's word fit for a text column, which takes neither broken
// UTF-8 nor a zero byte: one odd answer must not keep a batch from being settled.
func storable(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// arrayLiteral is the text form of an array of small numbers; empty for none.
func arrayLiteral(numbers []int) string {
	if len(numbers) == 0 {
		return ""
	}
	b := []byte{'{'}
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(append(b, '}'))
}
