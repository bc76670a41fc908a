-- The ledger of the dispatcher. Everything in schema dispatcher is internal; auditors read the
-- views of schema audit (007). Times are UTC instants, money is integer micros with its currency,
-- invariants are constraints.
--
-- What happens to messages is kept by day, in partitions that are dropped as a whole. A message
-- belongs to the UTC day on which it was received, and so does everything that becomes of it later:
-- the day is the upper part of its number seq, so whoever knows the number knows the partition.
-- Statements of the hot path name the partition itself, see ledger.onDay.

-- legal says which state may follow which. It is a plain expression on purpose: as the WHEN clause
-- of a trigger it is inlined, and a legal update never calls a function.
--
-- unknown may still become anything that an attempt can end in: a late answer. retry and waiting may
-- become what a late answer or a receipt tells about an unknown attempt that was about to be sent
-- once more; unknown follows them for what waits to be submitted again under its key too long.
-- no_receipt: nobody knows, and what comes late may still tell. A receipt may prove undelivered
-- wrong, and never delivered. It may also prove delivered what was given up after an answer that it
-- contradicts.
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
  when 'accepted'    then becomes in ('delivered', 'undelivered', 'no_receipt')
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

-- The lower part of seq. It starts again after 68 billion messages, on another day than before.
create sequence dispatcher.message_numbers maxvalue 68719476735 cycle;

-- One row per message, without its number and its text: those are in payloads. What stays of them
-- here tells nothing without the draw key: number_hmac and envelope_hmac are keyed hashes under the
-- key that was the first of the key file when the message was stored. calling_code is that of the
-- number, as E.164 says it: 44. All three are null for a record that could not be used.
--
-- Columns stand together by what writes them, what never changes first: an update logs the bytes
-- between the first and the last that it changed.
--
-- Most messages are never rewritten. When the first attempt was accepted and nothing else is to be
-- noted, the state stays sending, and the attempt tells that the message is accepted, and later
-- delivered: message_states has the states as they are. Every other change is written here.
--
-- waiting_since and waits_for tell about the wait that is under way: since when it was last looked
-- at, and for which channel or scope. waits lists those that are over, as {"reason", "on", "ms"}.
-- same_key is the key under which the next attempt repeats the last one, until when, and under
-- which account. Columns that few messages have are null, which takes no room.
create table dispatcher.messages (
  -- what came, and how it was planned
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
  topic              text not null default '',
  route              text,
  draw_key_id        text,
  first_choice       text,
  alphabet           text,
  detail             text, -- why a record could not be used, in a sentence for its producer without number and text
  -- what became of it
  attempts           smallint not null default 0 check (attempts >= 0),
  rounds             smallint not null default 0,
  possible_duplicate boolean not null default false,
  state              text not null,
  reason             text,
  next_at            timestamptz,
  finished_at        timestamptz,
  tried              text[],
  seen               jsonb,
  -- its waits
  waiting_since      timestamptz,
  waits_for          text,
  waits              jsonb,
  -- what the next attempt is bound to
  pinned             text,
  same_key_until     timestamptz,
  same_key           text,
  same_key_account   text,
  parts_cut          text, -- stands for how the text was cut that parts_left counts; stays when none is left
  parts_left         smallint[],
  constraint messages_state_check check (state in ('scheduled', 'waiting', 'retry', 'sending', 'accepted',
    'delivered', 'undelivered', 'no_receipt', 'rejected', 'failed', 'unknown', 'dead')),
  constraint messages_id_length check (length(id) > 0 and (length(id) <= 64 or state = 'dead')),
  constraint messages_next_at check ((next_at is not null) = (state in ('scheduled', 'waiting', 'retry'))),
  constraint messages_finished_at check ((finished_at is not null)
    = (state in ('delivered', 'undelivered', 'no_receipt', 'rejected', 'failed', 'unknown', 'dead'))),
  constraint messages_sending check (state not in ('sending', 'accepted', 'delivered', 'undelivered', 'no_receipt',
    'unknown') or attempts > 0),
  constraint messages_draw check (draw between 0 and draw_size - 1),
  constraint messages_waits check (jsonb_typeof(waits) = 'array'),
  constraint messages_same_key check ((same_key is null) = (same_key_until is null)
    and (same_key is null) = (same_key_account is null))
) partition by range (seq);

-- The records that could not be used, for who asks about those of some time. detail never changes,
-- so no update of a message touches this index, and no other message is in it.
create index messages_dead on dispatcher.messages (received_at) where detail is not null;

create trigger messages_legal_transition after update of state on dispatcher.messages
  for each row when (not dispatcher.legal(old.state, new.state))
  execute function dispatcher.refuse_transition();

-- What a producer sent, as it came: the only place with a number and a text, and with what somebody
-- who tries all numbers, or all texts, could find them by. digest tells a redelivered record from
-- another one under its id. recipient stands for the number wherever the number itself is not
-- needed (005); it is null for a record without one. A message whose payload is gone has no row.
create table dispatcher.payloads (
  seq       bigint primary key,
  digest    bigint not null,
  recipient bigint,
  envelope  bytea not null
) partition by range (seq);

-- One row per attempt, written in the transaction that took its slots. There is no foreign key to
-- messages: its check would lock and rewrite the message row for each attempt. answers counts the
-- outcomes written: 1, or 2 when a late truth replaced an unknown.
--
-- An attempt holds an active slot of its channel while it has no outcome, and until held_until if
-- that is set, unless freed says that the slot was given back before, or went on to the next
-- attempt. ticket_at is when the ticket was given that the attempt goes on with; null when it got
-- one of its own at its claim. leaves_at is its release time, where a limit gives one: it counts in
-- the second in which it may leave, which may be a later one than that of its claim; null for at
-- once.
--
-- receipts_owed is how many receipts tell all about an attempt whose settlement could not name all
-- parts that were, or may have been, taken, because nobody answered for them or the provider gave
-- them no id; null is as many as it named. receipts_within is for how long they are awaited from
-- settled_at on. cut_short: a part certainly was not taken and will not be, so the rest is no
-- delivery. proved: a receipt made it accepted, no answer did; null is false.
--
-- denied_parts is how many parts of the attempt the answer said were not taken; null is all that
-- the attempt owes receipts for, else one. Only when a receipt says of all of them that they were
-- delivered was the attempt delivered. contradicted_at is when the first such receipt came. The
-- attempt keeps its outcome and its price: what the provider answered is what it was.
--
-- unfit: the provider answered that it does not take this one message, which says nothing against
-- the channel; null is false. receipt_state is what the receipts come to: delivered or undelivered
-- when there is one for every part, no_receipt when time ran out before.
--
-- Columns stand together by what writes them, in the order in which it does: an update logs only
-- the bytes between the first and the last that it changed. price_micros and segments stand with
-- the claim's, as settlements seldom change them.
create table dispatcher.attempts (
  -- what the claim wrote
  message_seq        bigint not null,
  instance           bigint not null,
  claimed_at         timestamptz not null,
  ticket_at          timestamptz,
  leaves_at          timestamptz,
  price_micros       bigint not null check (price_micros >= 0),
  attempt            smallint not null check (attempt > 0),
  segments           smallint not null check (segments >= 0),
  channel            text not null,
  reason             text not null check (reason in ('first_choice', 'fallback', 'retry', 'resend')),
  currency           text not null,
  ranking            jsonb,
  -- what the settlement wrote
  settled_at         timestamptz,
  held_until         timestamptz,
  receipts_within    interval,
  answers            smallint not null default 0,
  receipts_owed      smallint check (receipts_owed > 0),
  denied_parts       smallint check (denied_parts > 0),
  outcome            text check (outcome in ('accepted', 'rejected', 'refused', 'throttled', 'unknown')),
  provider_reference text,
  provider_code      text,
  cut_short          boolean,
  unfit              boolean,
  -- what receipts wrote
  freed              boolean not null default false,
  proved             boolean,
  receipt_at         timestamptz,
  delivered_at       timestamptz,
  contradicted_at    timestamptz,
  receipt_state      text,
  receipt_cause      text,
  receipt_code       text,
  primary key (message_seq, attempt),
  constraint attempts_settled_at check ((outcome is null) = (settled_at is null)),
  constraint attempts_answers check (answers between 0 and 2 and (answers = 0) = (outcome is null)),
  constraint attempts_held check (held_until is null or outcome is not null),
  constraint attempts_receipt_state check (receipt_state in ('delivered', 'undelivered', 'no_receipt')),
  constraint attempts_delivered_at check ((delivered_at is not null) = (receipt_state is not distinct from 'delivered'))
) partition by range (message_seq);

-- Rows come in the order of the database's clock, so a block range index finds those of a time and
-- costs next to nothing to write. A range that has not been summarised yet is read by every
-- question: autovacuum summarises those that are full, and Days.Keep all of them.
create index attempts_claimed_at on dispatcher.attempts using brin (claimed_at)
  with (pages_per_range = 128, autosummarize = on);
create index attempts_contradicted on dispatcher.attempts (contradicted_at) where contradicted_at is not null;

-- message_states are the messages with the states that they have.
create view dispatcher.message_states as
  select
    m.seq, m.kafka_offset, m.number_hmac, m.envelope_hmac, m.routing_version, m.draw, m.draw_size,
    m.received_at, m.expires_at, m.next_at, m.waiting_since, m.same_key_until, m.kafka_partition,
    m.calling_code, m.segments, m.attempts, m.rounds, m.possible_duplicate, m.reason, m.id, m.lane,
    m.tenant, m.topic, m.route, m.draw_key_id, m.first_choice, m.alphabet, m.detail, m.pinned,
    m.waits_for, m.same_key, m.same_key_account, m.parts_cut, m.parts_left, m.tried, m.seen,
    m.waits,
    case when a.message_seq is null then m.state
      when a.receipt_state = 'delivered' then 'delivered' else 'accepted' end as state,
    coalesce(m.finished_at, a.delivered_at) as finished_at
  from dispatcher.messages m
  left join dispatcher.attempts a on m.state = 'sending' and a.message_seq = m.seq
    and a.attempt = m.attempts and a.outcome = 'accepted';

-- The ids that are recognised when they come again. A unique index cannot span partitions, so they
-- have tables of their own, two of them in turn: new ids go into table turn % 2 unless the other
-- one has them, and the other one is emptied, and becomes the current one, when its youngest id is
-- older than the retention of ids. Whoever takes the turn locks both tables, so no claim overlaps.
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

-- due is what an index over all days would be: the messages that have something to do by
-- themselves, in the order in which they come due. A trigger keeps it: whoever changes a message has
-- it locked, and waits for its row here. So who has a row here locked, and its message not yet,
-- must wait for nobody.
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
create index due_waits_for on dispatcher.due (waits_for, next_at) where waits_for is not null;
create index due_queue on dispatcher.due (lane) where state <> 'scheduled' and reason is distinct from 'paused';

create function dispatcher.keep_due() returns trigger
language plpgsql as $$
begin
  if new.next_at is null then
    delete from dispatcher.due where seq = new.seq;
  else
    insert into dispatcher.due (seq, next_at, expires_at, lane, tenant, state, reason, waits_for)
    values (new.seq, new.next_at, new.expires_at, new.lane, new.tenant, new.state, new.reason, new.waits_for)
    on conflict (seq) do update set next_at = excluded.next_at, expires_at = excluded.expires_at,
      state = excluded.state, reason = excluded.reason, waits_for = excluded.waits_for;
  end if;
  return null;
end
$$;

create trigger messages_come_due after insert on dispatcher.messages
  for each row when (new.next_at is not null) execute function dispatcher.keep_due();
create trigger messages_due after update of next_at, expires_at, state, reason, waits_for on dispatcher.messages
  for each row when (old.next_at is distinct from new.next_at or new.next_at is not null
    and (old.expires_at, old.state, old.reason, old.waits_for)
      is distinct from (new.expires_at, new.state, new.reason, new.waits_for))
  execute function dispatcher.keep_due();

-- held is the same for slots that are held beyond their answer. Whoever changes an attempt that has
-- a row here locks the attempt first.
create table dispatcher.held (
  message_seq bigint not null,
  attempt     smallint not null,
  held_until  timestamptz not null,
  primary key (message_seq, attempt)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index held_until on dispatcher.held (held_until);

create function dispatcher.keep_held() returns trigger
language plpgsql as $$
begin
  if new.held_until is null or new.freed then
    delete from dispatcher.held where message_seq = new.message_seq and attempt = new.attempt;
  else
    insert into dispatcher.held (message_seq, attempt, held_until)
    values (new.message_seq, new.attempt, new.held_until)
    on conflict (message_seq, attempt) do update set held_until = excluded.held_until;
  end if;
  return null;
end
$$;

create trigger attempts_held after update of held_until, freed on dispatcher.attempts
  for each row when (old.held_until is distinct from new.held_until
    or new.held_until is not null and old.freed <> new.freed)
  execute function dispatcher.keep_held();

-- The days that there are partitions for, counted from 1970-01-01. ids_indexed: the ids of its
-- messages are in past_ids, for who asks about a message by its id. payloads: they
-- have not been dropped yet. kept is how many were left when they were, because their messages had
-- not ended. living is how many messages had not ended when the day was to be dropped, at
-- looked_at. dropping: its partitions are on their way out, and nothing refers to them any more.
create table dispatcher.days (
  day         integer primary key,
  payloads    boolean not null default true,
  ids_indexed boolean not null default false,
  dropping    boolean not null default false,
  kept        bigint not null default 0,
  living      bigint not null default 0,
  looked_at   timestamptz
);

-- day_of is the day of a message, first_of the smallest number of a day.
create function dispatcher.day_of(seq bigint) returns integer
language sql immutable strict parallel safe return (seq >> 36)::integer;
create function dispatcher.first_of(day integer) returns bigint
language sql immutable strict parallel safe return day::bigint << 36;
create function dispatcher.day_at(at timestamptz) returns integer
language sql immutable strict parallel safe return floor(extract(epoch from at) / 86400)::integer;

-- The ids of past days, ascending, for who asks about a message by its id: they are stored once
-- more when the ids of their day may be forgotten, and never change. So the smallest index finds
-- them, and to make it holds up nobody who writes to the messages.
create table dispatcher.past_ids (
  id  text collate "C" not null,
  seq bigint not null
) partition by range (seq);

-- For how long the owner of this schema keeps facts at least, whatever the login of the dispatcher
-- asks for: drop_day takes no younger day away.
create table dispatcher.least_kept (
  facts interval not null default '1 day' check (facts >= interval '1 day')
);
create unique index least_kept_one on dispatcher.least_kept ((true));
insert into dispatcher.least_kept default values;

-- The login of the dispatcher need own nothing here, see roles/roles.sql. What makes, indexes and
-- drops the tables of days therefore runs with the rights of the owner: the functions below that
-- are "security definer". Each has a fixed search_path, names every object with its schema, and
-- does nothing else than it says for any argument. Nobody but the owner may call them unless it is
-- granted. None of them is called per message.

-- copy_grants gives a table the grants of another one, also those of single columns: statements
-- name the tables of days themselves.
create function dispatcher.copy_grants(source regclass, target regclass) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  one record;
begin
  for one in
    select g.privilege_type as privilege, '' as columns, g.grantee
    from pg_class c, aclexplode(c.relacl) g where c.oid = source and g.grantee <> c.relowner
    union all
    select g.privilege_type, format('(%I)', a.attname), g.grantee
    from pg_attribute a, aclexplode(a.attacl) g where a.attrelid = source and not a.attisdropped
  loop
    execute format('grant %s %s on %s to %s', one.privilege, one.columns, target,
      case when one.grantee = 0 then 'public' else one.grantee::regrole::text end);
  end loop;
end
$$;

-- make_day makes the partitions of a day, unless they are there. To make a table and attach it
-- waits for nobody who reads the others, as to create a partition would.
--
-- The fill factor of attempts leaves room for the two later versions of a row on its own page, by
-- its settlement and by its receipt, and no index holds a column that they change: both are
-- heap-only updates. At 45 a fifth of them is not, which takes more disk than the room does. Most
-- messages are never updated, so their pages are filled.
create function dispatcher.make_day(day integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  suffix text := to_char(date '1970-01-01' + day, 'YYYYMMDD');
  bounds text := format('for values from (%s) to (%s)', dispatcher.first_of(day), dispatcher.first_of(day + 1));
begin
  perform pg_advisory_xact_lock(hashtext('dispatcher.make_day'));
  if exists (select from dispatcher.days d where d.day = make_day.day) then
    return;
  end if;
  execute format('create table dispatcher.messages_%s (like dispatcher.messages including defaults including constraints)
    with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.1)', suffix);
  execute format('create table dispatcher.payloads_%s (like dispatcher.payloads including defaults including constraints)', suffix);
  execute format('create table dispatcher.attempts_%s (like dispatcher.attempts including defaults including constraints)
    with (fillfactor = 35, autovacuum_vacuum_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.1)', suffix);
  execute format('alter table dispatcher.messages attach partition dispatcher.messages_%s %s', suffix, bounds);
  execute format('alter table dispatcher.payloads attach partition dispatcher.payloads_%s %s', suffix, bounds);
  execute format('alter table dispatcher.attempts attach partition dispatcher.attempts_%s %s', suffix, bounds);
  perform dispatcher.copy_grants('dispatcher.messages', ('dispatcher.messages_' || suffix)::regclass),
    dispatcher.copy_grants('dispatcher.payloads', ('dispatcher.payloads_' || suffix)::regclass),
    dispatcher.copy_grants('dispatcher.attempts', ('dispatcher.attempts_' || suffix)::regclass);
  insert into dispatcher.days (day) values (day);
end
$$;

-- make_days makes those of today and the next ones, a week at most.
create function dispatcher.make_days(ahead integer) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
begin atomic
  select dispatcher.make_day(dispatcher.day_at(clock_timestamp()) + n) from generate_series(0, least(ahead, 7)) n;
end;

-- index_ids stores the ids of a past day in past_ids, unless it has. Nobody adds a message to that
-- day any more. The rows are in order, so a block range index
-- finds one of them in some pages; without statistics nobody would use it.
create function dispatcher.index_ids(day integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  suffix text := to_char(date '1970-01-01' + day, 'YYYYMMDD');
begin
  perform from dispatcher.days d where d.day = index_ids.day and not d.ids_indexed and not d.dropping
    and d.day < dispatcher.day_at(clock_timestamp()) for update;
  if not found then
    return;
  end if;
  execute format('create table dispatcher.past_ids_%s (like dispatcher.past_ids)', suffix);
  execute format('insert into dispatcher.past_ids_%s select id, seq from dispatcher.messages_%1$s order by id', suffix);
  execute format('create index on dispatcher.past_ids_%s using brin (id) with (pages_per_range = 16)', suffix);
  execute format('analyze dispatcher.past_ids_%s', suffix);
  perform dispatcher.copy_grants('dispatcher.past_ids', ('dispatcher.past_ids_' || suffix)::regclass);
  execute format('alter table dispatcher.past_ids attach partition dispatcher.past_ids_%s for values from (%s) to (%s)',
    suffix, dispatcher.first_of(day), dispatcher.first_of(day + 1));
  update dispatcher.days d set ids_indexed = true where d.day = index_ids.day;
end
$$;

-- summarise brings one partition of the index on claimed_at up to date.
create function dispatcher.summarise(index oid) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform brin_summarize_new_values(i.inhrelid) from pg_inherits i
  where i.inhrelid = index and i.inhparent = 'dispatcher.attempts_claimed_at'::regclass;
end
$$;

-- drop_day drops one of the tables of a day that has been marked as on its way out, if it is there.
-- The caller bounds how long it waits for its locks.
create function dispatcher.drop_day(kind text, day integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind not in ('messages', 'payloads', 'attempts', 'past_ids') then
    raise exception 'there is no table % of a day', kind using errcode = 'invalid_parameter_value';
  end if;
  if not exists (select from dispatcher.days d, dispatcher.least_kept l where d.day = drop_day.day and d.dropping
      and to_timestamp((d.day + 1)::bigint * 86400) <= clock_timestamp() - l.facts) then
    raise exception 'day % is not on its way out, or the owner of the ledger keeps it longer', date '1970-01-01' + day
      using errcode = 'insufficient_privilege';
  end if;
  execute format('drop table if exists dispatcher.%I', kind || '_' || to_char(date '1970-01-01' + day, 'YYYYMMDD'));
end
$$;

-- forget_day takes a day off the list once nothing of it is left.
create function dispatcher.forget_day(day integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regclass('dispatcher.messages_' || to_char(date '1970-01-01' + day, 'YYYYMMDD')) is null then
    delete from dispatcher.days d where d.day = forget_day.day and d.dropping;
  end if;
end
$$;

revoke execute on function dispatcher.copy_grants, dispatcher.make_day, dispatcher.make_days, dispatcher.index_ids,
  dispatcher.summarise, dispatcher.drop_day, dispatcher.forget_day from public;

select dispatcher.make_days(2);
