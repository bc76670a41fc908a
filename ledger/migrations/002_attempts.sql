-- Attempts, the receipts that providers send later, and ambiguous submissions: it is not known
-- whether the provider took them.

-- One row per attempt, written in the transaction that took its slots. There is no foreign key to
-- messages: its check would lock the message's row for each attempt.
--
-- An attempt holds an active slot of its channel until it has an outcome, or until held_until if
-- that is set. freed says that the slot was given back before, or that the next attempt uses it.
--
-- The row keeps what the provider answered, whatever receipts say later: outcome and price do not
-- change when a receipt contradicts them.
--
-- Columns stand in the order in which they are written: an update logs the bytes between the first
-- and the last column that it changed. Settlements seldom change price_micros and segments, so they
-- stand with the columns of the claim. Null stands for false in booleans without default.
create table dispatcher.attempts (
  -- written by the claim
  message_seq        bigint not null,
  instance           bigint not null,
  claimed_at         timestamptz not null,
  ticket_at          timestamptz, -- when the slot was taken that it has from the attempt before
  leaves_at          timestamptz, -- release time; counts in this second's window; null for at once
  price_micros       bigint not null check (price_micros >= 0),
  attempt            smallint not null check (attempt > 0),
  segments           smallint not null check (segments >= 0),
  channel            text not null,
  reason             text not null,
  currency           text not null,
  ranking            jsonb,
  -- written by the settlement
  settled_at         timestamptz,
  held_until         timestamptz,
  receipts_within    interval, -- for how long after settled_at receipts are awaited
  answers            smallint not null default 0, -- 2 when a late answer replaced unknown
  -- How many receipts make the attempt complete, when the settlement could not name all parts that
  -- were or may have been taken. Null: as many as it named.
  receipts_owed      smallint check (receipts_owed > 0),
  -- How many parts the answer said were not taken. Null: all that receipts are owed for, else one.
  -- The attempt counts as delivered only when receipts say so of all of them.
  denied_parts       smallint check (denied_parts > 0),
  outcome            text,
  provider_reference text,
  provider_code      text,
  cut_short          boolean, -- a part was not taken and will not be: the message is not delivered
  unfit              boolean, -- refused for this message only, which says nothing about the channel
  -- written by receipts
  freed              boolean not null default false,
  proved             boolean, -- accepted because of a receipt, not of an answer
  receipt_at         timestamptz,
  delivered_at       timestamptz,
  contradicted_at    timestamptz, -- when a receipt first said that a denied part was delivered
  receipt_state      text, -- set when each part has a receipt, or when time ran out (no_receipt)
  receipt_cause      text,
  receipt_code       text,
  primary key (message_seq, attempt),
  constraint attempts_reason_check check (reason in ('first_choice', 'fallback', 'retry', 'resend',
    'no_receipt')),
  constraint attempts_outcome_check check (outcome in ('accepted', 'rejected', 'refused',
    'throttled', 'unknown')),
  constraint attempts_settled_at check ((outcome is null) = (settled_at is null)),
  constraint attempts_answers check (answers between 0 and 2
    and (answers = 0) = (outcome is null)),
  constraint attempts_held check (held_until is null or outcome is not null),
  constraint attempts_receipt_state check (receipt_state in ('delivered', 'undelivered',
    'no_receipt')),
  constraint attempts_delivered_at check ((delivered_at is not null)
    = (receipt_state is not distinct from 'delivered'))
) partition by range (message_seq);

-- Rows are added in the order of the database's clock, so a block range index is enough and costs
-- little to write. Every query reads the ranges that are not summarised yet. Autovacuum summarises
-- full ranges, and Days.Keep all of them.
create index attempts_claimed_at on dispatcher.attempts using brin (claimed_at)
  with (pages_per_range = 128, autosummarize = on);
create index attempts_contradicted on dispatcher.attempts (contradicted_at)
  where contradicted_at is not null;

-- Attempts that hold their slot after their outcome, kept by a trigger like dispatcher.due. To
-- change an attempt that has a row here, lock the attempt first.
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

-- Messages with their true states, see dispatcher.messages.
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
    coalesce(m.finished_at, a.delivered_at) as finished_at,
    m.sender
  from dispatcher.messages m
  left join dispatcher.attempts a on m.state = 'sending' and a.message_seq = m.seq
    and a.attempt = m.attempts and a.outcome = 'accepted';

-- receipt_rank orders the states of receipts: a higher rank replaces a lower one.
create function dispatcher.receipt_rank(state text) returns integer
language sql immutable parallel safe
return case state when 'delivered' then 3 when 'undelivered' then 2 when 'pending' then 1
  else 0 end;

-- One row per part of a message for which a receipt is expected or has come. The settlement or the
-- receipt creates it, whichever is first, and the other completes it.
--
-- No provider's reference has a space in it. A reference that starts with a space is ours: it
-- stands for a receipt that carried our key and no reference. One with a space further on is a
-- reference that an earlier message has and still waits under.
--
-- A row is written once by its settlement and once or twice by receipts. These updates change no
-- indexed column, and the fill factor leaves room for them, so they are heap-only. Most receipts
-- come in time, so due_at has no index. A row with due_at has look_at too, or its message is in
-- dispatcher.awaited.
create table dispatcher.receipts (
  channel     text collate "C" not null,
  reference   text collate "C" not null,
  message_seq bigint,   -- null until a settlement names the reference; so is attempt
  attempt     smallint,
  -- the position of the reference in its settlement, from 1; null for a receipt with our key
  part        smallint check (part > 0),
  state       text not null default 'expected', -- until a receipt comes
  cause       text,
  code        text,
  received_at timestamptz, -- by the database's clock
  -- when to look at the row: when no receipt came in time, or at once when the receipt was first
  due_at      timestamptz,
  look_at     timestamptz,
  early_since timestamptz -- received_at while the message is not known
    generated always as (case when message_seq is null then received_at end) stored,
  primary key (channel, reference),
  constraint receipts_state_check check (state in ('expected', 'pending', 'undelivered',
    'delivered')),
  constraint receipts_attempt check ((message_seq is null) = (attempt is null)),
  constraint receipts_part check (part is null or message_seq is not null),
  constraint receipts_due_at check (due_at is null or message_seq is not null),
  constraint receipts_look_at check (look_at is null or due_at is not null),
  constraint receipts_received_at check ((received_at is null) = (state = 'expected')),
  constraint receipts_cause check (cause is null or state = 'undelivered')
) with (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.1,
        autovacuum_analyze_scale_factor = 0.1);
create index receipts_message_seq on dispatcher.receipts (message_seq)
  where message_seq is not null;
create index receipts_look_at on dispatcher.receipts (look_at) where look_at is not null;
create index receipts_early on dispatcher.receipts (early_since) where early_since is not null;

-- One row per settlement and due_at of the receipts that it expects, with their messages. When
-- that time has come, the receipts that are still due get their look_at, and the row is deleted. It
-- may list messages without such receipts.
create table dispatcher.awaited (
  due_at timestamptz not null,
  seqs   bigint[] not null
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.1);
create index awaited_due_at on dispatcher.awaited (due_at);

-- One row per ambiguous submission. Attempts that used the same key are one submission. An open
-- ambiguity has a next_at, a closed one a verdict. A verdict final may still be replaced.
create table dispatcher.ambiguous (
  message_seq bigint not null,
  key         text collate "C" not null,
  attempt     smallint not null check (attempt > 0), -- the first attempt of the submission
  last        smallint not null,                     -- the latest, which carries the price
  -- Stands for the channel's settings at the submit. With others the provider may not be the same,
  -- and may not know the key.
  account     text not null default '',
  step        text not null, -- how the dispatcher tries to find out
  opened_at   timestamptz not null default now(),
  until       timestamptz not null, -- when it gives up
  next_at     timestamptz, -- the next try
  asked       smallint not null default 0 check (asked >= 0),
  closed_at   timestamptz,
  verdict     text,
  author      text not null default '',
  login       text, -- see note_login; null while open
  note        text not null default '',
  part_taken  boolean not null default false, -- a part was certainly taken, with or without an id
  primary key (message_seq, key),
  constraint ambiguous_step_check check (step in ('same_key', 'lookup', 'receipt', 'none')),
  constraint ambiguous_verdict_check check (verdict in ('taken', 'not_taken', 'resent', 'final')),
  constraint ambiguous_last check (last >= attempt),
  constraint ambiguous_closed check ((closed_at is null) = (verdict is null)
    and (closed_at is null) = (next_at is not null))
);
create index ambiguous_due on dispatcher.ambiguous (next_at) where next_at is not null;
create index ambiguous_final on dispatcher.ambiguous (closed_at)
  where verdict in ('final', 'resent');

-- Tables with an author have a login too: the database user of the session. The author is only what
-- the session claims. note_login is the trigger of all these tables; it overwrites what an insert
-- says. login is null in rows from before the column was added.
create function dispatcher.note_login() returns trigger language plpgsql as $$
begin
  new.login := session_user;
  return new;
end
$$;

-- An ambiguity gets its author, and so its login, from the update that closes it. The second
-- condition prevents an update from setting a login by itself.
create trigger note_login before update on dispatcher.ambiguous
  for each row when (new.closed_at is distinct from old.closed_at
    or new.login is distinct from old.login)
  execute function dispatcher.note_login();
create trigger note_login_of_new before insert on dispatcher.ambiguous
  for each row when (new.closed_at is not null or new.login is not null)
  execute function dispatcher.note_login();

-- named_attempts finds the attempts that receipts name by our key, if they are on the channel that
-- the receipt came from, and the reference in dispatcher.receipts for a receipt without one: the
-- attempt's own if it has exactly one, else ours. nr is the position in the arrays.
--
-- A custom plan has the numbers as constants, so that PostgreSQL reads only their partitions.
create function dispatcher.named_attempts(seqs bigint[], attempts smallint[], channels text[])
returns table (nr bigint, reference text)
language plpgsql stable
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
    select g.nr, (
        select case when count(distinct n) = 1 and coalesce(a.receipts_owed, 1) = 1 then min(n)
          else ' ' || a.message_seq || '.' || a.attempt end
        from unnest(string_to_array(a.provider_reference, ' ')) as n where n <> '')
    from unnest(seqs, attempts, channels) with ordinality as g(seq, attempt, channel, nr)
    join dispatcher.attempts a on a.message_seq = g.seq and a.attempt = g.attempt
      and a.channel = g.channel
    where a.message_seq = any(seqs);
end
$$;
