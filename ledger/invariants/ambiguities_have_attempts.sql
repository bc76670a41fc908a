-- guarantee 2: One attempt, at most one submit
-- An ambiguity refers to attempts that exist, all on one channel.
select format('an ambiguity is about attempts %s to %s of message number %s, and %s',
    b.attempt, b.last, b.message_seq, case
      when count(a.attempt) <> b.last - b.attempt + 1 then format('%s of them exist', count(a.attempt))
      when count(distinct a.channel) > 1 then 'they were made on several channels'
      else 'it was taken, though attempt ' || b.last || ' was not accepted' end) as detail
from dispatcher.ambiguous b
left join dispatcher.attempts a on a.message_seq = b.message_seq
  and a.attempt >= b.attempt and a.attempt <= b.last
  and a.message_seq >= :first and a.message_seq < :next
where b.message_seq >= :first and b.message_seq < :next
  and dispatcher.day_of(b.message_seq) in (select day from dispatcher.days where not dropping)
group by b.message_seq, b.key
having count(a.attempt) <> b.last - b.attempt + 1 or count(distinct a.channel) > 1
  or b.verdict = 'taken' and not bool_or(a.attempt = b.last and a.outcome = 'accepted')
