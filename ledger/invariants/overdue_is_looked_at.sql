-- guarantee 1: Nothing accepted is lost
-- What comes due by itself is looked at: receipts that did not come, slots, unanswered submissions.
--
-- After an outage there may be much of it, so it has six times as long as an attempt of an instance
-- that is gone. Messages that wait for a slot are not meant: they wait as long as there is none.
select format('%s have been due since %s and nobody has looked at them', what,
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
