-- guarantee 2: One attempt, at most one submit
-- The attempts of a message are numbered from 1 without a gap, and its row has their number.
select case
    when m.seq is null then format('there are %s attempts of message number %s, which does not exist',
      a.n, a.message_seq)
    else format('message %s counts %s attempts, and has %s%s', m.id, m.attempts, coalesce(a.n, 0),
      ', numbered from ' || a.first || ' to ' || a.last) end as detail
from (
  select seq, id, attempts from dispatcher.messages where seq >= :first and seq < :next
) m
full join (
  select message_seq, count(*) as n, min(attempt) as first, max(attempt) as last
  from dispatcher.all_attempts where message_seq >= :first and message_seq < :next
  group by message_seq
) a on a.message_seq = m.seq
where m.seq is null or m.attempts <> coalesce(a.n, 0) or a.first <> 1 or a.last <> a.n
