-- guarantee 1: Nothing accepted is lost
-- A message that is being sent has a last attempt without outcome, or one that was accepted.
--
-- With any other outcome the message has to have gone on, in the same transaction. The state of a
-- message whose first attempt was simply accepted stays sending in this table.
select format('message %s is being sent, but its attempt %s %s', m.id, m.attempts,
    case when a.attempt is null then 'is not there' else 'was ' || a.outcome end) as detail
from dispatcher.messages m
left join dispatcher.attempts a on a.message_seq = m.seq and a.attempt = m.attempts
  and a.message_seq >= :first and a.message_seq < :next
where m.seq >= :first and m.seq < :next
  and m.state = 'sending' and (a.attempt is null or a.outcome <> 'accepted')
