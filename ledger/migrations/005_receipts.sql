-- Receipts: what providers say later about what they took. It only adds: the previous release
-- claims and settles as before, and what it sends simply stays accepted.

-- receipt_rank orders what receipts say: what has a higher rank replaces what has a lower one, and
-- nothing replaces delivered.
create function dispatcher.receipt_rank(state text) returns integer
language sql immutable parallel safe
return case state when 'delivered' then 3 when 'undelivered' then 2 when 'pending' then 1 else 0 end;

-- One row per part of a message that a receipt is expected for, or came for. Whichever of
-- settlement and receipt is first makes it, and the other completes it: message_seq and attempt are null
-- while no settlement has named the reference, and state is expected while no receipt has. part counts
-- the references of the settlement from 1; it is null for a row that a receipt made which carried our own key.
-- due_at is when somebody has to look at the row: when no receipt came in time, at once when one came before
-- its settlement. received_at is by the database's clock. No reference of a provider holds a space: one that begins with
-- a space stands for a receipt without reference, and one with a space further on for a reference that another
-- message had first and still waits under.
--
-- What a final receipt changes (due_at) is in an index, so its update is no heap-only one. The rows of
-- messages and attempts, which are wider and have more indexes, are what stays so.
create table dispatcher.receipts (
  channel     text collate "C" not null,
  reference   text collate "C" not null,
  message_seq bigint,
  attempt     smallint,
  part        smallint check (part > 0),
  state       text not null default 'expected' check (state in ('expected', 'pending', 'undelivered', 'delivered')),
  cause       text,
  code        text,
  received_at timestamptz,
  due_at      timestamptz,
  primary key (channel, reference),
  constraint receipts_attempt check ((message_seq is null) = (attempt is null)),
  constraint receipts_part check (part is null or message_seq is not null),
  constraint receipts_due_at check (due_at is null or message_seq is not null),
  constraint receipts_received_at check ((received_at is null) = (state = 'expected')),
  constraint receipts_cause check (cause is null or state = 'undelivered')
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.1);
create index receipts_message_seq on dispatcher.receipts (message_seq) where message_seq is not null;
create index receipts_due_at on dispatcher.receipts (due_at) where due_at is not null;
create index receipts_early on dispatcher.receipts (received_at) where message_seq is null;

-- What the receipts of an attempt come to: delivered or undelivered when there is one for every part,
-- no_receipt when time ran out before. delivered_at (001) is set with delivered.
--
-- receipts_owed is how many receipts tell all about an attempt whose settlement could not name all parts that were, or may have
-- been, taken, because nobody answered for them or the provider gave them no id; null is as many as it named. receipts_within is for
-- how long they are awaited from settled_at on. cut_short: a part certainly was not taken and will not be, so the rest is no delivery.
-- proved: a receipt made it accepted, no answer did; null is false.
--
-- denied_parts is how many parts of the attempt the answer said were not taken; null is all that the attempt owes receipts for, else one. Only
-- when a receipt says of all of them that they were delivered was the attempt delivered. contradicted_at is when the first such receipt
-- came. The attempt keeps its outcome and its price: what the provider answered is what it was.
--
-- unfit: the provider answered that it does not take this one message, which says nothing against the channel; null is false.
alter table dispatcher.attempts
  add column receipts_owed smallint check (receipts_owed > 0),
  add column receipts_within interval,
  add column cut_short boolean,
  add column proved boolean,
  add column unfit boolean,
  add column denied_parts smallint check (denied_parts > 0),
  add column contradicted_at timestamptz,
  add column receipt_state text,
  add column receipt_cause text,
  add column receipt_code text,
  add column receipt_at timestamptz,
  add constraint attempts_receipt_state check (receipt_state in ('delivered', 'undelivered', 'no_receipt')) not valid,
  add constraint attempts_delivered_at check ((delivered_at is not null) = (receipt_state is not distinct from 'delivered')) not valid;

create index attempts_contradicted on dispatcher.attempts (contradicted_at) where contradicted_at is not null;

-- no_receipt: nobody knows, and what comes late may still tell. A receipt may prove undelivered wrong, and never
-- delivered. It may also prove delivered what was given up after an answer that it contradicts. retry and waiting: the receipt for an
-- unknown attempt that was about to be sent once more; unknown follows them for what waits to be submitted again under its key too long.
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

-- What held before holds under the wider rules, so rows that are there need no check, which would
-- keep everybody out for as long as it took.
alter table dispatcher.messages
  drop constraint messages_state_check,
  drop constraint messages_finished_at,
  drop constraint messages_sending,
  add constraint messages_state_check check (state in ('scheduled', 'waiting', 'retry', 'sending', 'accepted',
    'delivered', 'undelivered', 'no_receipt', 'rejected', 'failed', 'unknown', 'dead')) not valid,
  add constraint messages_finished_at check ((finished_at is not null)
    = (state in ('delivered', 'undelivered', 'no_receipt', 'rejected', 'failed', 'unknown', 'dead'))) not valid,
  add constraint messages_sending check (state not in ('sending', 'accepted', 'delivered', 'undelivered', 'no_receipt', 'unknown')
    or attempts > 0) not valid;

create or replace view audit.attempts as
  select m.id as message_id, a.attempt, a.channel, a.reason, a.outcome, a.provider_reference, a.provider_code,
         a.segments, a.price_micros, a.currency, a.claimed_at, a.settled_at, a.delivered_at,
         date_trunc('minute', coalesce(a.ticket_at, a.claimed_at)) as ticket_bucket,
         coalesce(a.ticket_at, a.claimed_at) as ticket_accepted_at, a.claimed_at as ticket_last_check_in,
         coalesce(a.leaves_at, a.claimed_at) as counted_at,
         a.receipt_state, a.receipt_cause, a.receipt_code, a.receipt_at,
         a.unfit is true and a.outcome in ('refused', 'unknown') as unfit, a.contradicted_at
  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq;

-- message_id is null for a receipt whose message is not known, or not yet.
create view audit.receipts as
  select m.id as message_id, r.attempt, r.part, r.channel, nullif(split_part(r.reference, ' ', 1), '') as reference,
         r.state, r.cause, r.code, r.received_at
  from dispatcher.receipts r left join dispatcher.messages m on m.seq = r.message_seq;
