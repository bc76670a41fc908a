-- guarantee 2: One attempt, at most one submit
-- Without a receipt, only an accepted message is sent on, and to a channel that has not had it.
select format('message %s was sent on to channel %s in attempt %s, %s', m.id, a.channel, a.attempt,
    case when e.same then 'which may have taken it before'
      else 'and no earlier attempt was accepted' end) as detail
from dispatcher.attempts a
cross join lateral (
  select coalesce(bool_or(b.outcome = 'accepted'), false) as accepted,
    coalesce(bool_or(b.channel = a.channel and b.outcome in ('accepted', 'unknown')), false) as same
  from dispatcher.attempts b
  where b.message_seq = a.message_seq and b.attempt < a.attempt
    and b.message_seq >= :first and b.message_seq < :next
) e
join dispatcher.messages m on m.seq = a.message_seq and m.seq >= :first and m.seq < :next
where a.message_seq >= :first and a.message_seq < :next and a.reason = 'no_receipt'
  and (e.same or not e.accepted)
