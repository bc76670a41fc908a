-- guarantee 1: Nothing accepted is lost
-- The state of a message follows from its attempts.
--
-- Of several attempts the one with the highest state counts. A receipt may prove that a denied
-- attempt was delivered. Other invariants check messages that are being sent or wait.
select format('message %s is %s, which follows from none of its attempts', m.id, m.state) as detail
from dispatcher.messages m
cross join lateral (
  select
    bool_or(outcome = 'accepted') as accepted,
    bool_or(outcome = 'unknown') as unknown,
    bool_or(receipt_state = 'delivered' or contradicted_at is not null) as delivered,
    bool_or(receipt_state = 'undelivered') as undelivered,
    bool_or(receipt_state = 'no_receipt') as no_receipt
  from dispatcher.attempts
  where message_seq = m.seq and message_seq >= :first and message_seq < :next
) a
where m.seq >= :first and m.seq < :next
  and m.state not in ('sending', 'scheduled', 'waiting', 'retry', 'dead')
  and case m.state
    when 'accepted' then a.accepted
    when 'delivered' then a.delivered
    when 'undelivered' then a.undelivered
    when 'no_receipt' then a.no_receipt
    when 'unknown' then a.unknown and not a.accepted
    else not coalesce(a.accepted, false)
  end is not true
