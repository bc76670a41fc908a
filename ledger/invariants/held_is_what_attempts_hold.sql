-- guarantee 3: Admitted ≤ limit
-- Every slot that is held beyond its answer stands in held until its time, and nothing else does.
select case
    when h.attempt is null then format('attempt %s of message number %s holds a slot of channel %s and '
      'does not stand in held: nobody gives it back', a.attempt, a.message_seq, a.channel)
    when a.attempt is null then format('held names attempt %s of message number %s, which holds none',
      h.attempt, h.message_seq)
    else format('held has another time of attempt %s of message number %s than the attempt itself',
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
