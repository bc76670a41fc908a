-- guarantee 1: Nothing accepted is lost
-- Every awaited receipt will be checked when it is due.
--
-- No index of dispatcher.receipts has the due time unless look_at is set, so dispatcher.awaited
-- must list the message at that time.
select format('no instance will check for a receipt of message number %s, attempt %s, on channel %s, '
    'that is due at %s', r.message_seq, r.attempt, r.channel,
    to_char(r.due_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')) as detail
from dispatcher.receipts r
where r.message_seq >= :first and r.message_seq < :next and r.due_at is not null
  and r.look_at is distinct from r.due_at
  and (r.look_at is not null or not exists (
    select from dispatcher.awaited a where a.due_at = r.due_at and r.message_seq = any(a.seqs)))
