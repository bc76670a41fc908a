-- guarantee 2: One attempt, at most one submit
-- A message that may have been taken more than once is flagged possible_duplicate.
--
-- It may be taken twice if nobody answered, and once more for each attempt that was made because no
-- receipt came. Attempts under one key are one submission, because the provider recognises the key.
-- A submission that was certainly not taken does not count.
with submissions as (
  select distinct a.message_seq, coalesce(b.attempt, a.attempt) as submission,
    a.reason = 'no_receipt' as further
  from dispatcher.attempts a
  left join dispatcher.ambiguous b
    on b.message_seq = a.message_seq and a.attempt >= b.attempt and a.attempt <= b.last
  where a.message_seq >= :first and a.message_seq < :next
    and a.outcome in ('accepted', 'unknown') and b.verdict is distinct from 'not_taken'
    and exists (select from dispatcher.attempts o where o.message_seq = a.message_seq
      and o.message_seq >= :first and o.message_seq < :next and o.attempt > 1)
)
select format('message %s may have been taken %s times%s', m.id, s.n,
    case when m.possible_duplicate then '' else ', and is not flagged as a possible duplicate' end
  ) as detail
from (
  select message_seq, count(*) as n, count(*) filter (where further) as further
  from submissions group by message_seq having count(*) > 1
) s
join dispatcher.messages m on m.seq = s.message_seq and m.seq >= :first and m.seq < :next
where s.n - s.further > 2 or not m.possible_duplicate
