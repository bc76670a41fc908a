-- guarantee 1: Nothing accepted is lost
-- Every message that waits stands in due, as it is, and nothing else does.
--
-- Claims find the messages that come due in dispatcher.due. One that is missing there is never sent.
select case
    when d.seq is null then format(
      'message %s is %s, but does not stand in due: nobody takes it on', m.id, m.state)
    when m.seq is null then format(
      'due names message number %s, which does not wait', d.seq)
    else format('due says other things of message %s than the message itself', m.id)
  end as detail
from (
  select * from dispatcher.messages
  where seq >= :first and seq < :next and next_at is not null
) m
full join (
  select * from dispatcher.due
  where seq >= :first and seq < :next
    and dispatcher.day_of(seq) in (select day from dispatcher.days where not dropping)
) d on d.seq = m.seq
where (m.seq, m.next_at, m.expires_at, m.lane, m.tenant, m.state, m.reason, m.waits_for)
  is distinct from (d.seq, d.next_at, d.expires_at, d.lane, d.tenant, d.state, d.reason, d.waits_for)
