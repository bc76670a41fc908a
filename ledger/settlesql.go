package ledger

import "fmt"

// settle is one statement, hence atomic in one round trip.
//
//   - done writes the outcomes. An attempt that has one is left alone, except that a
//     truth which comes late replaces unknown. Writing twice has no second effect.
//   - freed gives the active slots back, once for each attempt: answers counts the
//     outcomes written, and a slot that was given back before is marked. The channels are
//     locked by name before they are written, as in a claim. active_max sinks with active
//     after it was lowered below it.
//   - moved takes the messages on, if this attempt is still their last one and nobody
//     has taken it on before. A late yes or no also stops a message that waits to be
//     sent once more, and then there will be no duplicate. So does a late yes to an earlier attempt than the last, also
//     while the last one is under way: its answer changes nothing then. late reads the messages as they are locked, when
//     there is a late answer: whoever was waited for, with the attempt or with the message, may have taken them on. It
//     locks all messages of the batch, not only those with late answers, because messages are locked in ascending order:
//     two batches could otherwise wait for each other, each with a late answer about the resend that the other has the
//     answer of.
//   - nobody are the messages of which it turns out that no attempt was taken, after they were sent more than once while
//     somebody might have had them. They are not unknown any more: the next claim ends them, or sends them again. others are
//     their other attempts, which are locked before the message is.
//   - the outbox gets the notices of the messages that moved, in the order given: nearly
//     always all of them, which go from the parameters to the row as they are. A late answer that leaves the message
//     in its state, for the same reason, is not news. Whoever composed the notice of an attempt may not know
//     that its message has been flagged since. The outbox's seq
//     is drawn after the rows' locks were taken; see Publish.
//
// A parameter of one element stands for a column of that value, a null one for a column
// of nulls; see brief. The given rows ascend by seq, so that two settlements of the same attempts wait for
// each other and never in a circle.
var settle = settleDone(additions{}) + `, leaving as (
	  select channel, count(*) as n from done where answers = 1 and not freed group by channel
	), ` + settleFreed("") + settleMoved

// settleMore is settle for attempts that go on holding their slots, that were throttled, that
// took more money from limits than they spent, that were refused as unfit, or that say how many receipts tell all about them.
//
//   - done keeps a slot until held_until, unless it was given back before, and writes what is said of receipts together with the
//     outcome.
//   - ahead locks all attempts, in their order, when somebody else has settled one before whose receipts this settlement says something
//     about: done would leave that one alone, and corrected, which comes after messages and channels, must wait for none.
//   - freed also lowers the channel's rate, see slowDown, once for all that were throttled.
//   - refunded gives money back, only with an attempt's first answer, and only while the limit is in
//     the window that it was taken from: that of the claim began before the claim, and any later
//     window after it. It goes back to the tallies that it was counted in as well, where they are still there. Limits come
//     after channels in the order of locks. creditors are read as they are locked, so that refunded decides by what was committed last;
//     whoever they waited for may have changed the row, so refunded takes from the row itself what it changes.
var settleMore = settleDone(additions{
	before: `said as materialized (
	  select seq, coalesce(attempt, ($2::smallint[])[1]) as attempt, coalesce(owed, ($26::smallint[])[1]) as owed
	  from unnest($1::bigint[], $2::smallint[], $26::smallint[]) as u(seq, attempt, owed)
	), ahead as materialized (
	  select from said s join dispatcher.attempts a on a.message_seq = s.seq and a.attempt = s.attempt
	  where exists (
	    select from said t join dispatcher.attempts b on b.message_seq = t.seq and b.attempt = t.attempt
	    where t.owed > 0 and b.outcome is not null)
	  order by s.seq, s.attempt for update of a
	), `,
	parameters: ", $19::bigint[], $20::bigint[]" + saidParameters + ", $30::boolean[], $33::smallint[]",
	names:      ", hold, slow" + saidNames + ", unfit, denied",
	columns: ", coalesce(hold, ($19::bigint[])[1]) as hold, coalesce(slow, ($20::bigint[])[1]) as slow" + saidColumns + `,
	      nullif(coalesce(unfit, ($30::boolean[])[1]), false) as unfit, nullif(coalesce(denied, ($33::smallint[])[1]), 0) as denied`,
	written: `,
	    held_until = case when a.answers = 0 and not a.freed and g.hold > 0 then now() + g.hold * interval '1 microsecond' else a.held_until end,
	    receipts_owed = case when ` + saysMore + ` then g.owed else a.receipts_owed end,
	    receipts_within = case when ` + saysMore + ` then g.within else a.receipts_within end,
	    cut_short = case when ` + saysMore + ` then g.cut else a.cut_short end,
	    unfit = coalesce(g.unfit, a.unfit), denied_parts = coalesce(g.denied, a.denied_parts)`,
	condition: `
	    and (select count(*) from ahead) >= 0`,
	returned: ", a.held_until, a.claimed_at, g.slow",
}) + `, leaving as (
	  select channel, count(*) filter (where answers = 1 and not freed and held_until is null) as n,
	    max(slow) filter (where slow >= 0) * interval '1 microsecond' as slow
	  from done group by channel
	  having count(*) filter (where answers = 1 and not freed and held_until is null) > 0 or max(slow) >= 0
	), ` + settleFreed(`,
	    ease_rate = case when l.slow is null then c.ease_rate else `+easedRate("now()")+` end,
	    ease_since = case when l.slow is null then c.ease_since else `+easedSince("now()")+` end,
	    ease_until = case when l.slow is null then c.ease_until else `+easedUntil("now()", "l.slow")+` end`) + `, back as (
	  select r.channel, r.scope, r.window_seconds, r.micros, array[r.lane, r.pool] as tallies, d.claimed_at
	  from unnest($21::bigint[], $22::text[], $23::text[], $24::int[], $25::bigint[], $31::text[], $32::text[])
	    as r(nr, channel, scope, window_seconds, micros, lane, pool)
	  join done d on d.nr = r.nr where d.answers = 1
	), creditors as materialized (
	  select m.channel, m.scope, m.window_seconds, m.unit, greatest(m.window_start, m.since) as since from dispatcher.limits m
	  where (m.channel, m.scope, m.window_seconds) in (select channel, scope, window_seconds from back) and m.unit = 'money'
	    and (select count(*) from locked) >= 0
	  order by m.channel, m.scope, m.window_seconds, m.unit for update
	), owed as (
	  select channel, scope, window_seconds, b.micros, b.tallies
	  from creditors o join back b using (channel, scope, window_seconds) where b.claimed_at >= o.since
	), apart as (
	  select channel, scope, window_seconds, jsonb_object_agg(tally, micros) as tallies from (
	    select channel, scope, window_seconds, t.tally, sum(micros)::bigint as micros
	    from owed, unnest(tallies) as t(tally) where t.tally <> '' group by channel, scope, window_seconds, t.tally
	  ) s group by channel, scope, window_seconds
	), refund as (
	  select channel, scope, window_seconds, w.micros, a.tallies
	  from (select channel, scope, window_seconds, sum(micros)::bigint as micros from owed group by channel, scope, window_seconds) w
	  left join apart a using (channel, scope, window_seconds)
	), refunded as (
	  update dispatcher.limits m set granted = greatest(m.granted - r.micros, 0),
	    max = case when m.max > m.configured_max then greatest(m.configured_max, m.granted - r.micros) else m.max end,
	    taken = case when r.tallies is null then m.taken else (
	      select jsonb_object_agg(t.key, greatest(t.value::bigint - coalesce((r.tallies ->> t.key)::bigint, 0), 0))
	      from jsonb_each_text(m.taken) t) end
	  from refund r where m.channel = r.channel and m.scope = r.scope and m.window_seconds = r.window_seconds and m.unit = 'money'
	)` + settleMoved

// What settleMore reads of receipts: how many tell all about the attempt, 0 when nothing is said; whether that is to be kept, because it is
// not simply the number of parts that the settlement names, or because nobody answered and Settlement.Await is to be known
// later; for how long they are awaited, and whether the message was cut short.
const (
	saidParameters = ", $26::smallint[], $27::boolean[], $28::bigint[], $29::boolean[]"
	saidNames      = ", owed, telling, within, cut"
	saidColumns    = `, coalesce(owed, ($26::smallint[])[1]) as owed, coalesce(telling, ($27::boolean[])[1]) as telling,
	      nullif(coalesce(within, ($28::bigint[])[1]), 0) * interval '1 microsecond' as within, nullif(coalesce(cut, ($29::boolean[])[1]), false) as cut`
)

// saysMore is the condition that row g says something about the receipts of attempt a that is to be written. Nearly all were answered
// and have as many as their settlement named parts, and nothing is written about them; where something else was written when nobody answered, the
// late answer corrects it.
const saysMore = `g.owed > 0 and (a.receipts_owed is not null or g.telling)`

// corrected follows settleMore where that says something about receipts. It is about attempts that somebody else has settled with the same
// outcome before, who may have known less of their receipts: another instance that took this one for lost, or a receipt with our key. What
// this settlement says replaces that, and nothing else of it takes effect. It is a statement of its own because it has to see what
// whoever settleMore waited for has committed; what settleMore has written stays as it is. All attempts are locked by then: by ahead, or by
// that wait.
const corrected = `
	update dispatcher.attempts a set receipts_owed = g.owed, receipts_within = g.within, cut_short = g.cut
	from (
	  select seq, attempt, outcome, owed, telling, nullif(within, 0) * interval '1 microsecond' as within, nullif(cut, false) as cut
	  from unnest($1::bigint[], $2::smallint[], $3::text[], $4::smallint[], $5::boolean[], $6::bigint[], $7::boolean[])
	    as u(seq, attempt, outcome, owed, telling, within, cut)
	) g
	where a.message_seq = g.seq and a.attempt = g.attempt and a.outcome = g.outcome and ` + saysMore + `
	  and (a.receipts_owed, a.receipts_within, a.cut_short) is distinct from (g.owed, g.within, g.cut)`

// additions are what settleMore adds to the beginning of a settlement: tables read before, parameters, their names, columns of a
// row, columns written, a condition and columns returned.
type additions struct{ before, parameters, names, columns, written, condition, returned string }

// settleDone is the beginning of a settlement.
func settleDone(more additions) string {
	return fmt.Sprintf(`
	with %[6]sdone as (
	  update dispatcher.attempts a set outcome = g.outcome, provider_code = nullif(g.code, ''),
	    provider_reference = nullif(g.reference, ''), segments = g.segments, price_micros = g.price_micros,
	    settled_at = now(), answers = a.answers + 1%[4]s
	  from (
	    select seq, coalesce(attempt, ($2::smallint[])[1]) as attempt, coalesce(outcome, ($3::text[])[1]) as outcome,
	      coalesce(code, ($4::text[])[1]) as code, reference, coalesce(segments, ($6::smallint[])[1]) as segments,
	      coalesce(price_micros, ($7::bigint[])[1]) as price_micros, coalesce(state, ($8::text[])[1]) as state,
	      coalesce(reason, ($9::text[])[1]) as reason, next_at, coalesce(tried, ($11::boolean[])[1]) as tried,
	      coalesce(pinned, ($12::text[])[1]) as pinned, coalesce(parts_left, ($13::text[])[1]) as parts_left,
	      coalesce(parts_cut, ($14::text[])[1]) as parts_cut,
	      coalesce(possible_duplicate, ($15::boolean[])[1]) as possible_duplicate, nr%[3]s
	    from unnest($1::bigint[], $2::smallint[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[],
	      $8::text[], $9::text[], $10::timestamptz[], $11::boolean[], $12::text[], $13::text[], $14::text[], $15::boolean[]%[1]s) with ordinality
	      as u(seq, attempt, outcome, code, reference, segments, price_micros,
	        state, reason, next_at, tried, pinned, parts_left, parts_cut, possible_duplicate%[2]s, nr)
	  ) g
	  where a.message_seq = g.seq and a.attempt = g.attempt
	    and (a.outcome is null or (a.outcome = 'unknown' and g.outcome <> 'unknown'))%[7]s
	  returning a.channel, a.answers, a.freed, g.seq, g.attempt, a.outcome,
	    g.state, g.reason, g.next_at, g.tried, g.pinned, g.parts_left, g.parts_cut, g.possible_duplicate, g.nr%[5]s
	)`, more.parameters, more.names, more.columns, more.written, more.returned, more.before, more.condition)
}

// settleFreed gives slots back, with what settleMore writes as well.
func settleFreed(written string) string {
	return `locked as materialized (
	  select c.channel from dispatcher.channels c where c.channel in (select channel from leaving)
	  order by c.channel for update
	), freed as (
	  update dispatcher.channels c set active = c.active - l.n,
	    active_max = case when c.configured_max = 0 then 0 else greatest(c.configured_max, c.active - l.n) end` + written + `
	  from leaving l where c.channel = l.channel and l.channel in (select channel from locked)
	)`
}

// settleMoved is the end of a settlement.
var settleMoved = `, others as materialized (
	  select d.nr, e.message_seq, e.attempt, e.outcome, d.attempt as denied, d.outcome as denial
	  from done d join dispatcher.attempts e on e.message_seq = d.seq and e.attempt <> d.attempt
	  where d.outcome in ('rejected', 'refused', 'throttled') and (d.state = 'unknown' or d.answers > 1)
	  order by e.message_seq, e.attempt for update of e
	), nobody as (
	  select o.nr, case when bool_or(o.outcome = 'rejected' or o.denial = 'rejected') then 'rejected' else 'refused' end as reason
	  from others o group by o.nr having not bool_or(` + mayBeTaken("o", "o.denied") + `)
	), late as materialized (
	  select m.seq, m.state, m.reason, m.attempts from done d join dispatcher.messages m on m.seq = d.seq
	  where exists (select from done e where e.answers > 1) and (select count(*) from others) >= 0
	  order by m.seq for update of m
	), moved as (
	  update dispatcher.messages m set state = w.state, reason = nullif(w.reason, ''),
	    next_at = case when w.state in ('retry', 'waiting') then coalesce(d.next_at, now()) end,
	    finished_at = case when w.state in ('rejected', 'failed', 'unknown') then now() end,
	    tried = case when d.tried then array_append(m.tried, d.channel) else m.tried end,
	    pinned = nullif(d.pinned, ''), parts_left = nullif(d.parts_left, '')::smallint[],
	    parts_cut = coalesce(nullif(d.parts_cut, ''), m.parts_cut),
	    waiting_since = case when w.state = 'waiting' then now() end, waits_for = null,
	    possible_duplicate = case when m.state in ('retry', 'waiting')
	        and not exists (select from dispatcher.attempts r where r.message_seq = m.seq and r.reason = 'resend') then false
	      else m.possible_duplicate or d.possible_duplicate end
	  from done d left join late t on t.seq = d.seq left join nobody n on n.nr = d.nr
	  cross join lateral (
	    select case when f.again then 'retry' else d.state end as state, case when f.again then n.reason else d.reason end as reason
	    from (select n.nr is not null and (d.state = 'unknown' or t.attempts > d.attempt) as again) f) w
	  where m.seq = d.seq
	    and (m.attempts = d.attempt and coalesce(t.state, m.state) in ('sending', 'unknown')
	      or m.attempts = d.attempt and coalesce(t.state, m.state) in ('retry', 'waiting') and d.answers = 2 and d.state in ('accepted', 'rejected')
	      or m.attempts > d.attempt and d.answers = 2 and d.state = 'accepted' and t.state in ('sending', 'retry', 'waiting', 'unknown')
	      or m.attempts > d.attempt and n.nr is not null and t.state = 'unknown')
	  returning d.nr, m.possible_duplicate and not d.possible_duplicate as flags,
	    d.state = w.state and (t.state is null or (t.state, t.reason) is distinct from (w.state, nullif(w.reason, ''))) as tells
	), told as (
	  select count(*) = cardinality($1::bigint[]) and $18::boolean and bool_and(tells and not flags) as everything from moved
	)
	insert into dispatcher.outbox (kind, keys, "values")
	select 'status', $16::text[], $17::bytea[] from told where everything
	union all
	select 'status', array_agg(n.key order by n.nr), array_agg(case when m.flags then ` + flaggedEvent("n.value") + ` else n.value end order by n.nr)
	from told, unnest($16::text[], $17::bytea[]) with ordinality as n(key, value, nr) join moved m on m.nr = n.nr and m.tells
	where everything is not true and n.value <> ''
	having count(*) > 0`

// mayBeTaken is the condition that attempt e may have been taken once attempt denied was not. All attempts under one key are one
// submission: what is certain of the last of them holds for those before it.
func mayBeTaken(e, denied string) string {
	return `(` + e + `.outcome is null or ` + e + `.outcome in ('unknown', 'accepted')) and not exists (
	    select from dispatcher.ambiguous b where b.message_seq = ` + e + `.message_seq and ` + e + `.attempt >= b.attempt and ` + e + `.attempt <= b.last
	      and (b.verdict = 'not_taken' or b.last = ` + denied + `))`
}

// flaggedEvent is a status event, a JSON object without the field, with possible_duplicate set: whoever composed it did not know.
func flaggedEvent(value string) string {
	return `substring(` + value + ` from 1 for length(` + value + `) - 1) || convert_to(',"possible_duplicate":true}', 'UTF8')`
}

// easedRate, easedSince and easedUntil are admission.Ease.SlowDown for a row c of channels; now
// and wait are expressions of an instant and an interval. Several answers within a second count once,
// because they answer the same burst.
func easedRate(now string) string {
	return `case when ` + onceASecond(now) + ` then 0.5 * least(1, coalesce(c.ease_rate, 1)
	      + coalesce(0.05 * greatest(extract(epoch from ` + now + ` - c.ease_since)::float8, 0), 0)) else c.ease_rate end`
}

func easedSince(now string) string {
	return `case when ` + onceASecond(now) + ` then ` + now + ` else c.ease_since end`
}

func easedUntil(now, wait string) string {
	return `greatest(c.ease_until, ` + now + ` + ` + wait + `)`
}

func onceASecond(now string) string {
	return `(c.ease_since is null or ` + now + ` - c.ease_since >= interval '1 second')`
}
