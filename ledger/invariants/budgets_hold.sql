-- guarantee 3: Admitted ≤ limit
-- The size of a prepaid budget is the sum of its top-ups, and it has granted what its attempts cost.
--
-- Each top-up has the sum of those before it, so a missing one is noticed. Attempts claimed since
-- the limit began count with their present price, because a refund never includes what is billed.
with budgets as (
  select l.channel, l.scope, l.currency, l.configured_max, l.max, l.granted, l.since,
    coalesce((select sum(t.micros) from dispatcher.top_ups t
      where t.channel = l.channel and t.scope = l.scope and t.currency = l.currency), 0) as topped_up
  from dispatcher.limits l where l.window_seconds = 2147483647 and l.scope <> 'tenant:*'
), costs as (
  select b.channel, b.scope, sum(a.price_micros) as micros
  from budgets b
  join (
    select a.channel, a.currency, a.price_micros, a.claimed_at, m.tenant from dispatcher.attempts a
    join dispatcher.messages m on m.seq = a.message_seq
    union all
    select a.channel, a.currency, a.price_micros, a.claimed_at, m.tenant
    from dispatcher.open_attempts a
    cross join lateral (select tenant from dispatcher.messages n where n.seq = a.message_seq
      offset 0) m
  ) a on a.claimed_at >= greatest(b.since, :'since')
    and a.claimed_at < :'until' and a.currency = b.currency
    and (b.channel = '' or a.channel = b.channel)
  where b.scope = 'channel' or b.scope = 'tenant:' || a.tenant
  group by b.channel, b.scope
), chain as (
  select channel, scope, currency, id, before,
    coalesce(sum(micros) over (partition by channel, scope, currency order by id
      rows between unbounded preceding and 1 preceding), 0) as derived
  from dispatcher.top_ups
)
select format('the budget %s may grant %s micros of %s, and was topped up with %s',
    concat_ws(' ', nullif(channel, ''), nullif(scope, 'channel')), configured_max, currency, topped_up)
  as detail
from budgets where configured_max <> topped_up or max <> topped_up
union all
select format('the budget %s has granted %s micros of %s, and its attempts cost %s',
    concat_ws(' ', nullif(b.channel, ''), nullif(b.scope, 'channel')), b.granted, b.currency, c.micros)
from budgets b join costs c using (channel, scope) where c.micros > b.granted
union all
select format('top-up %s of the budget %s says that %s micros of %s came before it, and they are %s',
    id, concat_ws(' ', nullif(channel, ''), nullif(scope, 'channel')), before, currency, derived)
from chain where before <> derived
