-- guarantee 2: One attempt, at most one submit
-- No attempt was claimed, or may leave, at the deadline of its message or later.
select format('attempt %s of message %s was to leave at %s, after its deadline of %s', a.attempt, m.id,
    to_char(greatest(a.claimed_at, a.leaves_at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS"Z"'),
    to_char(m.expires_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS"Z"')) as detail
from dispatcher.attempts a
join dispatcher.messages m on m.seq = a.message_seq and m.seq >= :first and m.seq < :next
where a.message_seq >= :first and a.message_seq < :next
  and greatest(a.claimed_at, a.leaves_at) >= m.expires_at
