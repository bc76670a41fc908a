-- Schema dispatcher is internal. Auditors read the views of schema audit (010_audit.sql). All times
-- are UTC instants; money is integer micros (millionths) of its currency.
--
-- Messages, payloads and attempts are partitioned by the UTC day on which the message was received.
-- The day is the upper part of the message's number seq (003_days.sql), so the number tells the
-- partition. Statements that run for every message name the partition directly: see ofDay in
-- package ledger.

-- legal says whether a message may go from one state to another. It is a plain expression so that
-- PostgreSQL can inline it into the WHEN clause of the trigger below: a legal update then calls no
-- function.
--
-- A late answer or a receipt may still change a state. unknown becomes whatever the answer says.
-- So do retry and waiting, while an unknown attempt is about to be repeated; they become unknown
-- when that repetition takes too long. accepted goes back to sending when no receipt came and the
-- route has no_receipt. A receipt of delivery replaces undelivered, rejected and failed. Nothing
-- replaces delivered.
create function dispatcher.legal(was text, becomes text) returns boolean
language sql immutable parallel safe
return was = becomes or case was
  when 'scheduled'   then becomes in ('sending', 'waiting', 'rejected', 'failed')
  when 'waiting'     then becomes in ('sending', 'retry', 'accepted', 'delivered', 'undelivered',
    'rejected', 'failed', 'unknown')
  when 'retry'       then becomes in ('sending', 'waiting', 'accepted', 'delivered', 'undelivered',
    'rejected', 'failed', 'unknown')
  when 'sending'     then becomes in ('waiting', 'retry', 'accepted', 'delivered', 'undelivered',
    'no_receipt', 'rejected', 'failed', 'unknown')
  when 'accepted'    then becomes in ('sending', 'delivered', 'undelivered', 'no_receipt')
  when 'no_receipt'  then becomes in ('delivered', 'undelivered')
  when 'undelivered' then becomes = 'delivered'
  when 'rejected'    then becomes = 'delivered'
  when 'failed'      then becomes = 'delivered'
  when 'unknown'     then becomes in ('waiting', 'retry', 'accepted', 'delivered', 'undelivered',
    'rejected', 'failed')
  else false
end;

create function dispatcher.refuse_transition() returns trigger
language plpgsql as $$
begin
  raise exception 'message % cannot go from % to %', old.seq, old.state, new.state
    using errcode = 'integrity_constraint_violation', constraint = 'messages_legal_transition';
end
$$;

-- The lower 36 bits of seq. The sequence starts again after 68 billion messages, on a later day.
create sequence dispatcher.message_numbers maxvalue 68719476735 cycle;

-- One row per message, without its number and text: those are in payloads. number_hmac and
-- envelope_hmac are hashes under the draw key that was first in the key file when the message was
-- stored. calling_code is the country code of the number, such as 44. All three are null for a
-- record that could not be used (a dead record).
--
-- Columns that are written together stand together, and those that never change come first: an
-- update logs the bytes between the first and the last column that it changed.
--
-- Most rows are never updated. When the first attempt was accepted and nothing else has to be
-- stored, the state stays sending. The view message_states (002_attempts.sql) then reads accepted
-- or delivered from the attempt.
create table dispatcher.messages (
  -- what was received, and its plan
  seq                bigint primary key,
  received_at        timestamptz not null default now(),
  expires_at         timestamptz,
  kafka_offset       bigint not null default 0,
  number_hmac        bigint,
  envelope_hmac      bigint,
  routing_version    bigint,
  draw               bigint,
  draw_size          bigint,
  kafka_partition    integer not null default 0,
  calling_code       smallint,
  segments           smallint,
  id                 text collate "C" not null,
  lane               text not null,
  tenant             text not null default '',
  sender             text, -- a name or a short code; long_code in place of a number
  topic              text not null default '',
  route              text,
  draw_key_id        text,
  first_choice       text,
  alphabet           text,
  detail             text, -- of a dead record: why, as a sentence without number and text
  -- its progress
  attempts           smallint not null default 0 check (attempts >= 0),
  rounds             smallint not null default 0,
  possible_duplicate boolean not null default false,
  state              text not null,
  reason             text,
  next_at            timestamptz, -- when a claim picks it up
  finished_at        timestamptz,
  tried              text[],
  seen               jsonb,
  -- its waits
  waiting_since      timestamptz, -- when the present wait was last looked at
  waits_for          text,        -- the channel or scope of the present wait
  waits              jsonb,       -- past waits: [{"reason", "on", "ms"}]
  -- what the next attempt has to keep
  pinned             text,        -- its channel
  same_key_until     timestamptz, -- until then it repeats the last one under same_key
  same_key           text,
  same_key_account   text,        -- the channel's account to which same_key belongs
  parts_cut          text,        -- how the text was split when some parts were accepted
  parts_left         smallint[],  -- the parts still to be sent, if pinned
  constraint messages_state_check check (state in ('scheduled', 'waiting', 'retry', 'sending',
    'accepted', 'delivered', 'undelivered', 'no_receipt', 'rejected', 'failed', 'unknown', 'dead')),
  constraint messages_id_length check (length(id) > 0 and (length(id) <= 64 or state = 'dead')),
  -- an accepted message has a next_at while it may still go to another channel (no_receipt)
  constraint messages_next_at check (case when next_at is null
    then state not in ('scheduled', 'waiting', 'retry')
    else state in ('scheduled', 'waiting', 'retry', 'accepted') end),
  constraint messages_finished_at check ((finished_at is not null) = (state in ('delivered',
    'undelivered', 'no_receipt', 'rejected', 'failed', 'unknown', 'dead'))),
  constraint messages_sending check (state not in ('sending', 'accepted', 'delivered',
    'undelivered', 'no_receipt', 'unknown') or attempts > 0),
  constraint messages_draw check (draw between 0 and draw_size - 1),
  constraint messages_waits check (jsonb_typeof(waits) = 'array'),
  constraint messages_same_key check ((same_key is null) = (same_key_until is null)
    and (same_key is null) = (same_key_account is null))
) partition by range (seq);

-- Dead records by time. Only they have a detail, and it never changes, so no update of a message
-- touches this index.
create index messages_dead on dispatcher.messages (received_at) where detail is not null;

create trigger messages_legal_transition after update of state on dispatcher.messages
  for each row when (not dispatcher.legal(old.state, new.state)
    or (old.state = 'accepted' and old.next_at is null and new.state = 'sending'))
  execute function dispatcher.refuse_transition();

-- The envelope of each message as the producer sent it. This is the only table with numbers and
-- texts, and with unkeyed hashes of them, from which somebody could find them by trying all values.
-- digest tells a repeated record from a different one with the same id. recipient is the hash that
-- opt-outs use (007_inbound.sql); it is null for a record without a number. The row is deleted long
-- before its message.
create table dispatcher.payloads (
  seq       bigint primary key,
  digest    bigint not null,
  recipient bigint,
  envelope  bytea not null
) partition by range (seq);

-- The ids that are recognised when they come again. A unique index cannot span partitions, so they
-- have two tables, used in turn: new ids go into table number turn % 2, unless the other one has
-- them. When the youngest id of the other one is older than DISPATCHER_ID_RETENTION, it is
-- truncated and becomes the current one. The transaction that does so locks both tables, so it
-- never overlaps a claim.
create table dispatcher.ids_0 (
  id  text collate "C" primary key,
  seq bigint not null
);
create table dispatcher.ids_1 (like dispatcher.ids_0 including all);

create table dispatcher.id_turns (
  turn  bigint not null,
  since timestamptz not null default now() -- when the current table took its first id
);
create unique index id_turns_one on dispatcher.id_turns ((true));
insert into dispatcher.id_turns (turn) values (0);

-- The messages with a next_at. This table takes the place of an index over all partitions. A
-- trigger keeps it: a transaction that changes a message has locked that message, and then waits
-- for its row here. So a transaction that has locked a row here, but not its message, must not wait
-- for any lock.
create table dispatcher.due (
  seq        bigint primary key,
  next_at    timestamptz not null,
  expires_at timestamptz,
  lane       text not null,
  tenant     text not null,
  state      text not null,
  reason     text,
  waits_for  text
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index due_next_at on dispatcher.due (next_at);
create index due_turns on dispatcher.due (lane, tenant, next_at, seq);
create index due_deadlines on dispatcher.due (lane, expires_at, seq);

-- For the messages to wake when something becomes free. An accepted message that waits for a limit
-- on its way to a further channel has a waits_for too. It is woken only when the routing changes,
-- and there may be very many, so the index leaves it out.
create index due_waits_for_channel on dispatcher.due (waits_for, next_at)
  where state = 'waiting' and waits_for is not null;

-- The waiting messages of a lane are counted every second. Scheduled, accepted and paused ones, and
-- those held by quiet hours, do not count as waiting. There may be very many of them.
create index due_waiting on dispatcher.due (lane) where state not in ('scheduled', 'accepted')
  and reason is distinct from 'paused' and reason is distinct from 'quiet_hours';

create function dispatcher.keep_due() returns trigger
language plpgsql as $$
begin
  if new.next_at is null then
    delete from dispatcher.due where seq = new.seq;
  else
    insert into dispatcher.due (seq, next_at, expires_at, lane, tenant, state, reason, waits_for)
    values (new.seq, new.next_at, new.expires_at, new.lane, new.tenant, new.state, new.reason,
      new.waits_for)
    on conflict (seq) do update set next_at = excluded.next_at, expires_at = excluded.expires_at,
      state = excluded.state, reason = excluded.reason, waits_for = excluded.waits_for;
  end if;
  return null;
end
$$;

create trigger messages_come_due after insert on dispatcher.messages
  for each row when (new.next_at is not null) execute function dispatcher.keep_due();
create trigger messages_due
  after update of next_at, expires_at, state, reason, waits_for on dispatcher.messages
  for each row when (old.next_at is distinct from new.next_at or new.next_at is not null
    and (old.expires_at, old.state, old.reason, old.waits_for)
      is distinct from (new.expires_at, new.state, new.reason, new.waits_for))
  execute function dispatcher.keep_due();
