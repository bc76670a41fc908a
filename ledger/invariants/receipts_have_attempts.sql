-- guarantee 4: Every choice can be derived again
-- A receipt is about an attempt that exists, on the channel that the receipt came from.
select format('a receipt of channel %s is about attempt %s of message number %s, which %s',
    r.channel, r.attempt, r.message_seq,
    coalesce('was made on channel ' || a.channel, 'does not exist')) as detail
from dispatcher.all_receipts r
left join dispatcher.attempts a on a.message_seq = r.message_seq and a.attempt = r.attempt
  and a.message_seq >= :first and a.message_seq < :next
where r.message_seq >= :first and r.message_seq < :next and a.channel is distinct from r.channel
  and dispatcher.day_of(r.message_seq) in (select day from dispatcher.days where not dropping)
