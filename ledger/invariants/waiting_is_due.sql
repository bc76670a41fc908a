-- guarantee 1: Nothing accepted is lost
-- Every message that waits has a row in due with the same values, and nothing else has.
--
-- Claims find due messages in dispatcher.due. A message that is missing there is never sent.
select case
    when d.seq is null then format(
      'message %s is %s, but has no row in due: no claim will find it', m.id, m.state)
    when m.seq is null then format(
      'due has message number %s, which does not wait', d.seq)
    else format('the row of message %s in due differs from the message', m.id)
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
