-- guarantee 1: Nothing accepted is lost
-- Receipts, held slots and unanswered submissions that are due are handled.
--
-- After an outage there may be many, so six times the period is allowed that attempts of a dead
-- instance get. Messages that wait for a slot are not checked: they wait until there is one.
select format('%s have been due since %s and were not handled', what,
    to_char(since at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')) as detail
from (
  select 'receipts' as what, min(look_at) as since from dispatcher.receipts
  union all
  select 'awaited receipts', min(due_at) from dispatcher.awaited
  union all
  select 'held slots', min(held_until) from dispatcher.held
  union all
  select 'unanswered submissions', min(next_at) from dispatcher.ambiguous
) due
where since < now() - 6 * interval :'grace'
  and exists (
    select from dispatcher.instances alive
    where alive.left_at is null and alive.last_seen > now() - interval '10 seconds'
      and alive.beating_since < now() - 6 * interval :'grace')
