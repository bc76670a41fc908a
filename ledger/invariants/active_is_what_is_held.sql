-- guarantee 3: Admitted ≤ limit
-- A channel counts as many attempts in flight as hold a slot of it, and no more than it may.
--
-- An attempt holds one while it has no outcome, and then while it stands in held. Attempts without
-- outcome are looked for since the oldest that an instance has: what is older holds its slot for ever.
with holding as (
  select a.channel from dispatcher.attempts a
  where a.outcome is null and not a.freed and a.claimed_at >= (
    select min(least(i.oldest_open_at, i.last_seen)) - interval '1 minute'
    from dispatcher.instances i)
  union all
  select a.channel from dispatcher.held h, lateral (
    select n.channel from dispatcher.attempts n
    where n.message_seq = h.message_seq and n.attempt = h.attempt limit 1) a
)
select case
    when c.channel is null then format('%s attempts hold a slot of channel %s, which is not there',
      h.n, h.channel)
    when c.active_max > 0 and c.active > c.active_max then format(
      'channel %s counts %s in flight, and may have %s', c.channel, c.active, c.active_max)
    else format('channel %s counts %s in flight, and %s hold a slot', c.channel, c.active,
      coalesce(h.n, 0)) end as detail
from dispatcher.channels c
full join (select channel, count(*) as n from holding group by channel) h on h.channel = c.channel
where c.channel is null or c.active <> coalesce(h.n, 0)
  or c.active_max > 0 and c.active > c.active_max
