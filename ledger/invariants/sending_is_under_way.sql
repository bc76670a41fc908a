-- guarantee 1: Nothing accepted is lost
-- The last attempt of a message in state sending has no outcome, or was accepted.
--
-- With any other outcome the same transaction would have changed the state of the message. A
-- message whose first attempt was accepted stays sending in this table.
select format('message %s is being sent, but its attempt %s %s', m.id, m.attempts,
    case when a.attempt is null then 'does not exist' else 'was ' || a.outcome end) as detail
from dispatcher.messages m
left join dispatcher.all_attempts a on a.message_seq = m.seq and a.attempt = m.attempts
  and a.message_seq >= :first and a.message_seq < :next
where m.seq >= :first and m.seq < :next
  and m.state = 'sending' and (a.attempt is null or a.outcome <> 'accepted')
