-- guarantee 3: Admitted ≤ limit
-- The active count of a channel is the number of attempts that hold a slot, and within its limit.
--
-- An attempt holds a slot while it has no outcome, and after that while it has a row in held. An
-- attempt without outcome is counted only if it is not older than the oldest open attempt that an
-- instance reports. Nobody would ever free the slot of an older one, so the counts then differ.
with holding as (
  select a.channel from dispatcher.all_attempts a
  where a.outcome is null and not a.freed and a.claimed_at >= (
    select min(least(i.oldest_open_at, i.last_seen)) - interval '1 minute'
    from dispatcher.instances i)
  union all
  select a.channel from dispatcher.held h, lateral (
    select n.channel from dispatcher.attempts n
    where n.message_seq = h.message_seq and n.attempt = h.attempt limit 1) a
)
select case
    when c.channel is null then format('%s attempts hold a slot of channel %s, which does not exist',
      h.n, h.channel)
    when c.active_max > 0 and c.active > c.active_max then format(
      'channel %s counts %s in flight, and its limit is %s', c.channel, c.active, c.active_max)
    else format('channel %s counts %s in flight, and %s hold a slot', c.channel, a.active,
      coalesce(h.n, 0)) end as detail
from dispatcher.channels c
join audit.active a using (channel)
full join (select channel, count(*) as n from holding group by channel) h on h.channel = c.channel
where c.channel is null or a.active <> coalesce(h.n, 0)
  or c.active_max > 0 and c.active > c.active_max
