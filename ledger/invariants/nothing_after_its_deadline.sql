-- guarantee 2: One attempt, at most one submit
-- No attempt was claimed at or after the deadline of its message, and none left after it.
--
-- A release time after the deadline is allowed: such an attempt is refused and does not leave. It
-- has left if the provider answered.
select format('attempt %s of message %s was %s at %s, after its deadline of %s', a.attempt, m.id,
    case when a.claimed_at >= m.expires_at then 'claimed' else 'to leave' end,
    to_char(greatest(a.claimed_at, a.leaves_at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS"Z"'),
    to_char(m.expires_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS"Z"')) as detail
from dispatcher.all_attempts a
join dispatcher.messages m on m.seq = a.message_seq and m.seq >= :first and m.seq < :next
where a.message_seq >= :first and a.message_seq < :next
  and (a.claimed_at >= m.expires_at
    or a.leaves_at >= m.expires_at and a.outcome in ('accepted', 'rejected', 'throttled'))
