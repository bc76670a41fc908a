-- guarantee 1: Nothing accepted is lost
-- An unknown message is final, or the dispatcher still tries to find out whether it was taken.
select format('message %s is unknown, and the dispatcher does not try to find out more', m.id) as detail
from dispatcher.messages m
where m.seq >= :first and m.seq < :next
  and m.state = 'unknown' and m.reason is distinct from 'ambiguous_final'
  and not exists (
    select from dispatcher.ambiguous b where b.message_seq = m.seq and b.closed_at is null)
