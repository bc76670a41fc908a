-- guarantee 2: One attempt, at most one submit
-- An attempt without outcome is the last of its message, which neither waits nor has failed.
--
-- Otherwise the message would be sent again before the provider has answered. A message that an
-- earlier attempt delivered, or got accepted, may have another attempt in flight.
select case when a.attempt <> m.attempts
    then format('attempt %s of message %s has no outcome, though attempt %s was made after it',
      a.attempt, m.id, m.attempts)
    else format('message %s is %s, though its attempt %s has no outcome', m.id, m.state, a.attempt)
  end as detail
from dispatcher.all_attempts a
join dispatcher.messages m on m.seq = a.message_seq and m.seq >= :first and m.seq < :next
where a.message_seq >= :first and a.message_seq < :next and a.outcome is null
  and (a.attempt <> m.attempts
    or m.state not in ('sending', 'accepted', 'delivered', 'undelivered', 'no_receipt'))
