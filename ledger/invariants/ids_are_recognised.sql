-- guarantee 2: One attempt, at most one submit
-- A record that comes again within a day is recognised: the id of its message is stored once.
--
-- Ids are kept for at least a day. Each one is looked up, because their tables may hold many days.
-- The id of a dead record that was published again belongs to the new message.
select format('message %s of number %s %s', m.id, m.seq, case i.n
    when 0 then 'would not be recognised if its record came again'
    when 1 then 'has an id that was given to number ' || i.seq
    else 'has an id that is stored twice' end) as detail
from dispatcher.messages m
cross join lateral (
  select count(*) as n, min(seq) as seq from (
    select seq from dispatcher.ids_0 where id = m.id
    union all
    select seq from dispatcher.ids_1 where id = m.id
  ) given
) i
where m.seq >= :first and m.seq < :next and m.received_at > now() - interval '1 day'
  and (i.n <> 1 or i.seq <> m.seq)
  and not (m.state = 'dead' and i.n < 2
    and exists (select from dispatcher.operator_actions r where r.message_seq = m.seq))
