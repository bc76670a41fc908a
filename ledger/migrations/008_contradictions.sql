-- Receipts that say "delivered" about an attempt that its provider had answered it did not take. It only adds.

-- denied_parts is how many parts of the attempt the answer said were not taken; null is all that the attempt owes receipts
-- for, else one. Only when a receipt says of all of them that they were delivered was the attempt delivered. contradicted_at is when the
-- first such receipt came. The attempt keeps its outcome and its price: what the provider answered is what it was.
alter table dispatcher.attempts
  add column denied_parts smallint check (denied_parts > 0),
  add column contradicted_at timestamptz;
create index attempts_contradicted on dispatcher.attempts (contradicted_at) where contradicted_at is not null;

-- A receipt may also prove delivered what was given up after such an answer.
create or replace function dispatcher.legal(was text, becomes text) returns boolean
language sql immutable parallel safe
return was = becomes or case was
  when 'scheduled'   then becomes in ('sending', 'waiting', 'rejected', 'failed')
  when 'waiting'     then becomes in ('sending', 'retry', 'accepted', 'delivered', 'undelivered', 'rejected', 'failed', 'unknown')
  when 'retry'       then becomes in ('sending', 'waiting', 'accepted', 'delivered', 'undelivered', 'rejected', 'failed', 'unknown')
  when 'sending'     then becomes in ('waiting', 'retry', 'accepted', 'delivered', 'undelivered', 'rejected', 'failed', 'unknown')
  when 'accepted'    then becomes in ('delivered', 'undelivered', 'no_receipt')
  when 'no_receipt'  then becomes in ('delivered', 'undelivered')
  when 'undelivered' then becomes = 'delivered'
  when 'rejected'    then becomes = 'delivered'
  when 'failed'      then becomes = 'delivered'
  when 'unknown'     then becomes in ('waiting', 'retry', 'accepted', 'delivered', 'undelivered', 'rejected', 'failed')
  else false
end;

create or replace view audit.attempts as
  select m.id as message_id, a.attempt, a.channel, a.reason, a.outcome, a.provider_reference, a.provider_code,
         a.segments, a.price_micros, a.currency, a.claimed_at, a.settled_at, a.delivered_at,
         date_trunc('minute', coalesce(a.ticket_at, a.claimed_at)) as ticket_bucket,
         coalesce(a.ticket_at, a.claimed_at) as ticket_accepted_at, a.claimed_at as ticket_last_check_in,
         coalesce(a.leaves_at, a.claimed_at) as counted_at,
         a.receipt_state, a.receipt_cause, a.receipt_code, a.receipt_at,
         a.unfit is true and a.outcome in ('refused', 'unknown') as unfit, a.contradicted_at
  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq;
