-- guarantee 3: Admitted ≤ limit
-- Every slot that is held beyond its answer has a row in held with its time, and nothing else has.
select case
    when h.attempt is null then format('attempt %s of message number %s holds a slot of channel %s and '
      'has no row in held: it will not be given back', a.attempt, a.message_seq, a.channel)
    when a.attempt is null then format('held has attempt %s of message number %s, which holds no slot',
      h.attempt, h.message_seq)
    else format('the time of attempt %s of message number %s in held differs from that in the attempt',
      a.attempt, a.message_seq) end as detail
from (
  select message_seq, attempt, channel, held_until from dispatcher.attempts
  where message_seq >= :first and message_seq < :next and held_until is not null and not freed
) a
full join (
  select * from dispatcher.held
  where message_seq >= :first and message_seq < :next
    and dispatcher.day_of(message_seq) in (select day from dispatcher.days where not dropping)
) h on h.message_seq = a.message_seq and h.attempt = a.attempt
where a.held_until is distinct from h.held_until
