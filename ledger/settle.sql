-- Stores the outcomes of attempts, the new states of their messages, and the notices. One statement
-- makes this atomic in one round trip. The given rows ascend by seq and attempt, so two settlements
-- of the same attempts wait for each other without a deadlock. An array of one element stands for a
-- column of that value, a null one for a column of nulls; see brief.
--
-- Most settlements need no more than insertSettled.
with
-- What the settlements say about receipts.
said as materialized (
  select seq,
    coalesce(attempt, (@attempts::smallint[])[1]) as attempt,
    coalesce(expected, (@receipts_expected::smallint[])[1]) as expected
  from unnest(@seqs::bigint[], @attempts::smallint[], @receipts_expected::smallint[])
    as u(seq, attempt, expected)
),
-- Locks all attempts of the batch in their order, if the batch says something about receipts of an
-- attempt that was settled before. The part named done skips that attempt, and the statement
-- "corrected", which follows, must not wait for its lock: messages and limits are locked by then.
ahead as materialized (
  select from said s join dispatcher.attempts a on a.message_seq = s.seq and a.attempt = s.attempt
  where exists (
    select from said t join dispatcher.attempts b on b.message_seq = t.seq
      and b.attempt = t.attempt
    where t.expected > 0 and b.outcome is not null)
  order by s.seq, s.attempt for update of a
),
-- The outcomes. An attempt that has one is left as it is, except that a later answer replaces
-- unknown. So settling again has no effect.
done as (
  update dispatcher.attempts a set outcome = g.outcome, provider_code = nullif(g.code, ''),
    provider_reference = nullif(g.reference, ''), segments = g.segments,
    price_micros = g.price_micros,
    settled_at = now(), answers = a.answers + 1,
    held_until = case when a.answers = 0 and not a.freed and g.hold > 0
      then now() + g.hold * interval '1 microsecond' else a.held_until end,
    receipts_owed = case when g.expected > 0 and (a.receipts_owed is not null or g.telling)
      then g.expected else a.receipts_owed end,
    receipts_within = case when g.expected > 0 and (a.receipts_owed is not null or g.telling)
      then g.within else a.receipts_within end,
    cut_short = case when g.expected > 0 and (a.receipts_owed is not null or g.telling)
      then g.cut else a.cut_short end,
    unfit = coalesce(g.unfit, a.unfit), denied_parts = coalesce(g.denied, a.denied_parts)
  from (
    select seq,
      coalesce(attempt, (@attempts::smallint[])[1]) as attempt,
      coalesce(outcome, (@outcomes::text[])[1]) as outcome,
      coalesce(code, (@codes::text[])[1]) as code,
      reference,
      coalesce(segments, (@segments::smallint[])[1]) as segments,
      coalesce(price_micros, (@prices::bigint[])[1]) as price_micros,
      coalesce(state, (@states::text[])[1]) as state,
      coalesce(reason, (@reasons::text[])[1]) as reason,
      next_at,
      coalesce(tried, (@tried::boolean[])[1]) as tried,
      coalesce(pinned, (@pinned::text[])[1]) as pinned,
      coalesce(parts_left, (@parts_left::text[])[1]) as parts_left,
      coalesce(parts_cut, (@parts_cut::text[])[1]) as parts_cut,
      coalesce(possible_duplicate, (@possible_duplicates::boolean[])[1]) as possible_duplicate,
      coalesce(plain, (@plain::boolean[])[1]) as plain,
      nr,
      coalesce(hold, (@holds::bigint[])[1]) as hold,
      coalesce(slow, (@slows::bigint[])[1]) as slow,
      coalesce(expected, (@receipts_expected::smallint[])[1]) as expected,
      coalesce(telling, (@receipts_telling::boolean[])[1]) as telling,
      nullif(coalesce(within, (@receipts_within::bigint[])[1]),
        0) * interval '1 microsecond' as within,
      nullif(coalesce(cut, (@cut_short::boolean[])[1]), false) as cut,
      nullif(coalesce(unfit, (@unfit::boolean[])[1]), false) as unfit,
      nullif(coalesce(denied, (@denied_parts::smallint[])[1]), 0) as denied,
      coalesce(repeats, (@repeats::boolean[])[1]) as repeats
    from unnest(@seqs::bigint[], @attempts::smallint[], @outcomes::text[], @codes::text[],
      @references::text[], @segments::smallint[], @prices::bigint[], @states::text[],
      @reasons::text[], @next_ats::timestamptz[], @tried::boolean[], @pinned::text[],
      @parts_left::text[], @parts_cut::text[], @possible_duplicates::boolean[],
      @plain::boolean[], @holds::bigint[], @slows::bigint[], @receipts_expected::smallint[],
      @receipts_telling::boolean[], @receipts_within::bigint[], @cut_short::boolean[],
      @unfit::boolean[], @denied_parts::smallint[], @repeats::boolean[]) with ordinality
      as u(seq, attempt, outcome, code, reference, segments, price_micros, state, reason,
        next_at, tried, pinned, parts_left, parts_cut, possible_duplicate, plain,
        hold, slow, expected, telling, within, cut, unfit, denied, repeats, nr)
  ) g
  where a.message_seq = g.seq and a.attempt = g.attempt
    and (a.outcome is null or (a.outcome = 'unknown' and g.outcome <> 'unknown'))
    and (select count(*) from ahead) >= 0
  returning a.channel, a.answers, a.freed, g.seq, g.attempt, a.outcome,
    g.state, g.reason, g.next_at, g.tried, g.pinned, g.parts_left, g.parts_cut,
      g.possible_duplicate, g.plain and a.answers = 1 as plain, g.nr,
    a.held_until, a.claimed_at, g.slow, a.currency, g.repeats
),
-- Slots are given back with the first outcome of an attempt, unless they were before.
freed as (
  insert into dispatcher.freed_slots as f (channel, slots)
  select channel, n.slots
  from (
    select d.channel, count(*) as slots from done d
    where d.answers = 1 and not d.freed
      and d.held_until is null
    group by d.channel
  ) n join dispatcher.channels using (channel) order by channel
  on conflict (channel) do update set slots = f.slots + excluded.slots
),
-- Channels are locked by name before they are written, as in a claim.
locked as materialized (
  select c.channel from dispatcher.channels c
  where c.channel in (select channel from done where slow >= 0)
  order by c.channel for update
),
slowed as (
  update dispatcher.channels c set
    ease_rate = case when (c.ease_since is null or now() - c.ease_since >= interval '1 second')
      then 0.5 * least(1, coalesce(c.ease_rate, 1)
        + coalesce(0.05 * greatest(extract(epoch from now() - c.ease_since)::float8, 0), 0))
      else c.ease_rate end,
    ease_since = case when (c.ease_since is null or now() - c.ease_since >= interval '1 second')
      then now() else c.ease_since end,
    ease_until = greatest(c.ease_until, now() + l.slow)
  from (
    select channel, max(slow) * interval '1 microsecond' as slow from done where slow >= 0
    group by channel
  ) l
  where c.channel = l.channel and l.channel in (select channel from locked)
),
-- Money goes back only with the first outcome of an attempt.
back as (
  select r.channel, r.scope, r.window_seconds, r.micros, array[r.lane, r.pool] as tallies,
    d.claimed_at, d.seq, d.attempt, d.currency, d.repeats
  from unnest(@refund_nrs::bigint[], @refund_channels::text[], @refund_scopes::text[],
    @refund_windows::int[], @refund_micros::bigint[], @refund_lanes::text[],
    @refund_pools::text[])
    as r(nr, channel, scope, window_seconds, micros, lane, pool)
  join done d on d.nr = r.nr where d.answers = 1
),
-- Limits are locked after channels. They are read by the locking select, because the last holder of
-- the lock may have changed them.
creditors as materialized (
  select m.channel, m.scope, m.window_seconds, m.unit, m.window_start, m.since
  from dispatcher.limits m
  where (m.channel, m.scope, m.window_seconds) in (
      select channel, scope, window_seconds from back)
    and m.unit = 'money' and (select count(*) from locked) >= 0
  order by m.channel, m.scope, m.window_seconds, m.unit for update
),
-- A refund goes only to the window that the money was taken from, and only before its end, because
-- a window that is over is sealed. That window began before the claim; a later one began after it.
-- An attempt under the key of the one before it gets back at most what that one was charged: the
-- provider bills the submission once, at one of the two prices.
given_back as (
  select channel, scope, window_seconds, b.tallies,
    case when b.repeats then coalesce((
      select least(p.price_micros, b.micros) from dispatcher.attempts p
      where p.message_seq = b.seq and p.attempt = b.attempt - 1 and p.currency = b.currency
        and p.claimed_at >= o.since), 0)
    else b.micros end as micros
  from creditors o join back b using (channel, scope, window_seconds)
  where b.claimed_at >= greatest(o.window_start, o.since)
    and now() < o.window_start + case o.window_seconds when 86400 then interval '25 hours'
      else make_interval(secs => o.window_seconds) end -- as in facts.window_evidence
),
-- The tallies of lanes and pools in which the money was counted.
apart as (
  select channel, scope, window_seconds, jsonb_object_agg(tally, micros) as tallies from (
    select channel, scope, window_seconds, t.tally, sum(micros)::bigint as micros
    from given_back, unnest(tallies) as t(tally) where t.tally <> ''
    group by channel, scope, window_seconds, t.tally
  ) s group by channel, scope, window_seconds
),
-- One row for each limit.
refund as (
  select channel, scope, window_seconds, w.micros, a.tallies
  from (
    select channel, scope, window_seconds, sum(micros)::bigint as micros
    from given_back group by channel, scope, window_seconds
  ) w
  left join apart a using (channel, scope, window_seconds)
),
-- The new values are computed from the present row, because another refund may have changed it.
refunded as (
  update dispatcher.limits m set granted = greatest(m.granted - r.micros, 0),
    max = case when m.max > m.configured_max
      then greatest(m.configured_max, m.granted - r.micros)
      else m.max end,
    taken = case when r.tallies is null then m.taken else (
      select jsonb_object_agg(t.key, greatest(
        t.value::bigint - coalesce((r.tallies ->> t.key)::bigint, 0), 0))
      from jsonb_each_text(m.taken) t) end
  from refund r where m.channel = r.channel and m.scope = r.scope
    and m.window_seconds = r.window_seconds
    and m.unit = 'money'
),
-- The other attempts of each message with an attempt that was not taken. They are locked before
-- messages.
others as materialized (
  select d.nr, e.message_seq, e.attempt, e.outcome, d.attempt as denied, d.outcome as denial
  from done d join dispatcher.attempts e on e.message_seq = d.seq and e.attempt <> d.attempt
  where d.outcome in ('rejected', 'refused', 'throttled')
    and (d.state = 'unknown' or d.answers > 1)
  order by e.message_seq, e.attempt for update of e
),
-- Messages with several attempts, none of which was taken. They are not unknown any more: the next
-- claim ends them or sends them again. All attempts under one key are one submission: when the last
-- of them was certainly not taken, the earlier ones were not either.
nobody as materialized (
  select o.nr, case when bool_or(o.outcome = 'rejected' or o.denial = 'rejected')
    then 'rejected' else 'refused' end as reason
  from others o group by o.nr having not bool_or(
    (o.outcome is null or o.outcome in ('unknown', 'accepted'))
    and not exists (
      select from dispatcher.ambiguous b where b.message_seq = o.message_seq
        and o.attempt >= b.attempt and o.attempt <= b.last
        and (b.verdict = 'not_taken' or b.last = o.denied)))
),
-- When the batch has a late answer, all its messages are locked, in their order. There are two
-- reasons. The last holder of a lock may have changed the state of a message, which is read here.
-- And two batches, each with a late answer to a message whose resend the other one settles, would
-- wait for each other.
late as materialized (
  select m.seq, m.state, m.reason, m.attempts from done d
    join dispatcher.messages m on m.seq = d.seq
  where exists (select from done e where e.answers > 1) and (select count(*) from others) >= 0
  order by m.seq for update of m
),
-- The new states of messages. The outcome of the last attempt moves its message, unless it was
-- moved before. A late accepted or rejected also stops a message that waits to be sent again. So
-- does a late accepted of an earlier attempt, even while the last attempt is in flight; the outcome
-- of that one then changes nothing.
moved as (
  update dispatcher.messages m set state = w.state, reason = nullif(w.reason, ''),
    next_at = case when w.state in ('retry', 'waiting') then coalesce(d.next_at, now())
      when w.state = 'accepted' and m.attempts = d.attempt then d.next_at end,
    finished_at = case when w.state in ('rejected', 'failed', 'unknown') then now() end,
    tried = case when d.tried then array_append(m.tried, d.channel) else m.tried end,
    pinned = nullif(d.pinned, ''), parts_left = nullif(d.parts_left, '')::smallint[],
    parts_cut = coalesce(nullif(d.parts_cut, ''), m.parts_cut),
    waiting_since = case when w.state = 'waiting' then now() end, waits_for = null,
    possible_duplicate = case when m.state in ('retry', 'waiting')
        and not exists (select from dispatcher.attempts r where r.message_seq = m.seq
          and r.reason = 'resend') then false
      else m.possible_duplicate or d.possible_duplicate end
  from done d left join late t on t.seq = d.seq left join nobody n on n.nr = d.nr
  cross join lateral (
    select case when f.again then 'retry' else d.state end as state,
      case when f.again then n.reason else d.reason end as reason
    from (
      select n.nr is not null and (d.state = 'unknown' or t.attempts > d.attempt) as again
    ) f) w
  where m.seq = d.seq and not d.plain
    and (m.attempts = d.attempt and coalesce(t.state, m.state) in ('sending', 'unknown')
      or m.attempts = d.attempt and coalesce(t.state, m.state) in ('retry', 'waiting')
        and d.answers = 2 and d.state in ('accepted', 'rejected')
      or m.attempts > d.attempt and d.answers = 2 and d.state = 'accepted'
        and t.state in ('sending', 'retry', 'waiting', 'unknown')
      or m.attempts > d.attempt and n.nr is not null and t.state = 'unknown')
  returning d.nr, m.possible_duplicate and not d.possible_duplicate as flags,
    d.state = w.state and (t.state is null
      or (t.state, t.reason) is distinct from (w.state, nullif(w.reason, ''))) as tells
),
-- The messages that get a status event. The rows of plain ones stay as they are.
changed as (
  select nr, flags from moved where tells
  union all
  select nr, false from done where plain
),
-- Whether the notices go to the outbox as they are given, which is the usual case.
told as (
  select count(*) = cardinality(@seqs::bigint[]) and @all_told::boolean
    and not bool_or(flags) as everything
  from changed
)
-- A notice is published if its message has changed. If the message was flagged as a possible
-- duplicate after the notice was composed, the flag is added here. The seq is drawn after the rows
-- were locked, see Outbox.Publish.
insert into dispatcher.outbox (kind, keys, "values")
select 'status', @notice_keys::text[], @notice_values::bytea[] from told where everything
union all
select 'status', array_agg(n.key order by n.nr),
  array_agg(case
    when m.flags then substring(n.value from 1 for length(n.value) - 1)
      || convert_to(',"possible_duplicate":true}', 'UTF8')
    else n.value end order by n.nr)
from told, unnest(@notice_keys::text[], @notice_values::bytea[]) with ordinality
  as n(key, value, nr)
join changed m on m.nr = n.nr
where everything is not true and n.value <> ''
having count(*) > 0
