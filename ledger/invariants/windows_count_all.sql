-- guarantee 3: Admitted ≤ limit
-- A window has granted at least as many messages as were claimed in it, whatever their outcome.
--
-- Only limits of a channel or a tenant are checked. An attempt counts in the second of leaves_at,
-- and in longer windows at the time of its claim. A day ends where the limit's next day
-- begins, 23 to 25 hours later. A window in which the limit began or ended has not counted
-- everything and is left out. So is a second if attempts that count in it were claimed before the
-- limit began, or if the limit ended, or was removed and came back, before the second was over. A
-- later second is open by then, at most 7.5 s ahead, and only its row shows that.
with windows as materialized (
  select * from audit.limit_windows w
  where unit = 'messages' and since <= window_start and until is null
    and (scope = 'channel' or scope like 'tenant:%')
    and window_start >= :'since' and window_start < :'until'
    and not (window_seconds = 1 and exists (
      select from audit.limit_windows n
      where n.channel = w.channel and n.scope = w.scope and n.window_seconds = 1
        and n.unit = 'messages' and n.window_start > w.window_start
        and n.window_start <= w.window_start + interval '8 s'
        and (n.until < w.window_start + interval '1 s' or n.since > w.since)))
), claimed as (
  select s.window_seconds, a.channel, a.tenant, count(*) as n,
    min(a.claimed_at) as first,
    to_timestamp(div(extract(epoch from case when s.window_seconds = 1
      then coalesce(a.leaves_at, a.claimed_at) else a.claimed_at end), s.window_seconds)
      * s.window_seconds) as window_start
  from (select distinct case window_seconds when 86400 then 60 else window_seconds end from windows)
    as s(window_seconds)
  cross join (
    select a.channel, a.leaves_at, a.claimed_at, m.tenant from dispatcher.attempts a
    join dispatcher.messages m on m.seq = a.message_seq
    union all
    select a.channel, a.leaves_at, a.claimed_at, m.tenant from dispatcher.open_attempts a
    cross join lateral (select tenant from dispatcher.messages n where n.seq = a.message_seq
      offset 0) m
  ) a
  where a.claimed_at >= :'since' and a.claimed_at < timestamptz :'until' + interval '1 day'
  group by s.window_seconds, a.channel, a.tenant, window_start
), counted as (
  select w.channel, w.scope, w.window_seconds, w.window_start, w.granted, w.since,
    c.channel as claimed_on, c.tenant, c.n, c.first
  from windows w join claimed c using (window_seconds, window_start)
  union all
  select w.channel, w.scope, w.window_seconds, w.window_start, w.granted, w.since,
    c.channel, c.tenant, c.n, c.first
  from windows w
  cross join lateral (
    select coalesce(min(n.window_start), w.window_start + interval '25 hours') as window_end
    from audit.limit_windows n
    where (n.channel, n.scope, n.window_seconds, n.unit)
      = (w.channel, w.scope, w.window_seconds, w.unit) and n.window_start > w.window_start
  ) e
  join claimed c on c.window_seconds = 60
    and c.window_start >= w.window_start and c.window_start < e.window_end
  where w.window_seconds = 86400
)
select format('%s messages of %s were claimed in the %s s from %s, and the limit has counted %s',
    sum(n), concat_ws(', ', 'channel ' || nullif(channel, ''), nullif(scope, 'channel')),
    window_seconds, to_char(window_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'), granted
  ) as detail
from counted
where (channel = '' or claimed_on = channel) and (scope = 'channel' or tenant = substr(scope, 8))
group by channel, scope, window_seconds, window_start, granted, since
having sum(n) > granted and min(first) >= since
