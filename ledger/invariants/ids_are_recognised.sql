-- guarantee 2: One attempt, at most one submit
-- A record that comes again within a day is recognised: the id of its message is on record once.
select format('message %s of number %s %s', m.id, m.seq, case count(i.seq)
    when 0 then 'would not be recognised if its record came again'
    else 'has an id that was given to number ' || min(i.seq) end) as detail
from dispatcher.messages m
left join (
  select id, seq from dispatcher.ids_0 union all select id, seq from dispatcher.ids_1
) i on i.id = m.id
where m.seq >= :first and m.seq < :next and m.received_at > now() - interval '1 day'
group by m.seq, m.id
having count(i.seq) <> 1 or min(i.seq) <> m.seq
