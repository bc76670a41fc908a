-- guarantee 2: One attempt, at most one submit
-- No attempt was claimed at the deadline of its message or later, and none left by then.
--
-- A release time that lies after the deadline is no fault: the attempt does not leave, and is
-- refused. It has left if the provider answered.
select format('attempt %s of message %s was %s at %s, after its deadline of %s', a.attempt, m.id,
    case when a.claimed_at >= m.expires_at then 'claimed' else 'to leave' end,
    to_char(greatest(a.claimed_at, a.leaves_at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS"Z"'),
    to_char(m.expires_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS"Z"')) as detail
from dispatcher.attempts a
join dispatcher.messages m on m.seq = a.message_seq and m.seq >= :first and m.seq < :next
where a.message_seq >= :first and a.message_seq < :next
  and (a.claimed_at >= m.expires_at
    or a.leaves_at >= m.expires_at and a.outcome in ('accepted', 'rejected', 'throttled'))
