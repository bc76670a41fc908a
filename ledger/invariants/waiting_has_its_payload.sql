-- guarantee 1: Nothing accepted is lost
-- A message that waits has its number and its text, which are dropped only after its end.
--
-- A message whose deadline has passed needs neither: the next claim ends it.
select format('message %s is %s, and its number and text are gone', m.id, m.state) as detail
from dispatcher.messages m
left join dispatcher.payloads p on p.seq = m.seq and p.seq >= :first and p.seq < :next
where m.seq >= :first and m.seq < :next
  and m.next_at is not null and m.expires_at > now() and p.seq is null
