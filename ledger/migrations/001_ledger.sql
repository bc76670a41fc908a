-- The ledger of the dispatcher. Everything in schema dispatcher is internal; auditors
-- read the views of schema audit (002). Times are UTC instants, money is integer
-- micros with its currency, invariants are constraints.

-- legal says which state may follow which. It is a plain expression on purpose: as the
-- WHEN clause of a trigger it is inlined and a legal update never calls a function.
-- unknown may still become anything that an attempt can end in: a late answer.
-- retry and waiting may become accepted or rejected: the late answer to an unknown
-- attempt that was about to be sent once more.
create function dispatcher.legal(was text, becomes text) returns boolean
language sql immutable parallel safe
return was = becomes or case was
  when 'scheduled' then becomes in ('sending', 'waiting', 'rejected', 'failed')
  when 'waiting'   then becomes in ('sending', 'retry', 'accepted', 'rejected', 'failed')
  when 'retry'     then becomes in ('sending', 'waiting', 'accepted', 'rejected', 'failed')
  when 'sending'   then becomes in ('waiting', 'retry', 'accepted', 'delivered', 'undelivered', 'rejected', 'failed', 'unknown')
  when 'accepted'  then becomes in ('delivered', 'undelivered')
  when 'unknown'   then becomes in ('waiting', 'retry', 'accepted', 'delivered', 'undelivered', 'rejected', 'failed')
  else false
end;

create function dispatcher.refuse_transition() returns trigger
language plpgsql as $$
begin
  raise exception 'message % cannot go from % to %', old.seq, old.state, new.state
    using errcode = 'integrity_constraint_violation', constraint = 'messages_legal_transition';
end
$$;

-- One row per message. The fill factor leaves room for the one or two later versions
-- of a row on its own page, and no index holds a column that they change: going from
-- sending to accepted is a heap-only update. That is why the index on due rows is
-- partial on next_at and not on state, and why queue repeats the lane.
create table dispatcher.messages (
  seq                bigint generated always as identity primary key,
  id                 text collate "C" not null unique,
  lane               text not null,
  tenant             text not null default '',
  topic              text not null default '',
  kafka_partition    integer not null default 0,
  kafka_offset       bigint not null default 0,
  digest             bigint not null,
  received_at        timestamptz not null default now(),
  expires_at         timestamptz,
  route              text,
  routing_version    bigint,
  draw               bigint,
  draw_size          bigint,
  draw_key_id        text,
  first_choice       text,
  segments           smallint,
  alphabet           text,
  state              text not null check (state in ('scheduled', 'waiting', 'retry', 'sending', 'accepted',
                       'delivered', 'undelivered', 'rejected', 'failed', 'unknown', 'dead')),
  reason             text,
  detail             text, -- why a record could not be used, in a sentence for its producer without number and text
  attempts           smallint not null default 0 check (attempts >= 0),
  rounds             smallint not null default 0,
  possible_duplicate boolean not null default false,
  next_at            timestamptz,
  finished_at        timestamptz,
  queue              text generated always as (case when state in ('waiting', 'retry') then lane end) stored,
  tried              text[],
  pinned             text,
  parts_left         smallint[],
  parts_cut          text, -- stands for how the text was cut that parts_left counts; stays when none is left
  seen               jsonb,
  envelope           bytea not null,
  constraint messages_id_length check (length(id) > 0 and (length(id) <= 64 or state = 'dead')),
  constraint messages_next_at check ((next_at is not null) = (state in ('scheduled', 'waiting', 'retry'))),
  constraint messages_finished_at check ((finished_at is not null)
    = (state in ('delivered', 'undelivered', 'rejected', 'failed', 'unknown', 'dead'))),
  constraint messages_sending check (state not in ('sending', 'accepted', 'delivered', 'undelivered', 'unknown') or attempts > 0),
  constraint messages_draw check (draw between 0 and draw_size - 1)
) with (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.1);

create index messages_due on dispatcher.messages (next_at) where next_at is not null;
create index messages_received_at on dispatcher.messages using brin (received_at); -- for reports by day
create index messages_queue on dispatcher.messages (queue) where queue is not null;

create trigger messages_legal_transition before update of state on dispatcher.messages
  for each row when (not dispatcher.legal(old.state, new.state))
  execute function dispatcher.refuse_transition();

-- One row per attempt, written in the transaction that took its slots. There is no
-- foreign key to messages: its check would lock and rewrite the message row for each
-- attempt. The claim inserts both in one transaction and nothing deletes either.
-- answers counts the outcomes written: 1, or 2 when a late truth replaced an unknown.
create table dispatcher.attempts (
  message_seq        bigint not null,
  attempt            smallint not null check (attempt > 0),
  channel            text not null,
  reason             text not null check (reason in ('first_choice', 'fallback', 'retry', 'resend')),
  outcome            text check (outcome in ('accepted', 'rejected', 'refused', 'throttled', 'unknown')),
  provider_reference text,
  provider_code      text,
  segments           smallint not null check (segments >= 0),
  price_micros       bigint not null check (price_micros >= 0),
  currency           text not null,
  claimed_at         timestamptz not null,
  settled_at         timestamptz,
  delivered_at       timestamptz,
  instance           bigint not null,
  answers            smallint not null default 0,
  ranking            jsonb,
  primary key (message_seq, attempt),
  constraint attempts_settled_at check ((outcome is null) = (settled_at is null)),
  constraint attempts_answers check (answers between 0 and 2 and (answers = 0) = (outcome is null))
) with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.1);

-- Append-only in the order of the database's clock: the right edge of a tree that stays in memory.
create index attempts_claimed_at on dispatcher.attempts (claimed_at);

-- Hot rows. Each claim rewrites a handful of them, so they get pages with much room
-- (old versions are pruned in place) and a vacuum that comes early.
--
-- active_max follows configured_max, except after it was lowered below what is under
-- way: then it sinks with active until it gets there. 0 means no bound.
create table dispatcher.channels (
  channel        text collate "C" primary key,
  position       integer not null default 0,
  configured_max bigint not null default 0 check (configured_max >= 0),
  active_max     bigint not null default 0,
  active         bigint not null default 0,
  last_assigned  timestamptz,
  removed_at     timestamptz,
  constraint channels_active check (0 <= active and (active_max = 0 or active <= active_max))
) with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- limits_granted is guarantee 3: whatever a process computes, no more than max is granted.
-- max is configured_max, except in a window in which it was lowered below granted.
create table dispatcher.limits (
  channel        text collate "C" not null,
  scope          text collate "C" not null default 'channel',
  window_seconds integer not null check (window_seconds > 0),
  unit           text collate "C" not null check (unit in ('messages', 'segments')),
  configured_max bigint not null check (configured_max >= 0),
  max            bigint not null,
  window_start   timestamptz not null default 'epoch',
  granted        bigint not null default 0,
  reserved       bigint not null default 0 check (reserved >= 0),
  primary key (channel, scope, window_seconds, unit),
  constraint limits_granted check (granted between 0 and max),
  constraint limits_max check (max <= greatest(configured_max, granted))
) with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- Windows that were left, if anything was granted in them.
create table dispatcher.limit_history (
  channel        text collate "C" not null,
  scope          text collate "C" not null,
  window_seconds integer not null,
  unit           text collate "C" not null,
  window_start   timestamptz not null,
  max            bigint not null,
  granted        bigint not null,
  reserved       bigint not null default 0,
  primary key (channel, scope, window_seconds, unit, window_start),
  constraint limit_history_granted check (granted between 0 and max)
);

-- One row per running process. oldest_open_at is the claim time of its oldest attempt
-- without an outcome, null when nothing is open. left_at is set by an orderly stop that
-- could not settle everything: the rest may be recovered without waiting.
create table dispatcher.instances (
  id             bigint generated by default as identity primary key,
  region         text not null,
  host           text not null,
  version        text not null default '',
  started_at     timestamptz not null default now(),
  last_seen      timestamptz not null default now(),
  oldest_open_at timestamptz,
  left_at        timestamptz
) with (fillfactor = 50);

-- Notices on their way to Kafka, one row per kind and transaction. Values are stored
-- uncompressed: they live for milliseconds. The sequence must not be cached: see Publish.
--
-- The number and the time of a status event are those of its row. The row is written after the message was locked,
-- so both rise from event to event of one message; now() would be the beginning of the transaction, before it
-- waited for the lock.
create table dispatcher.outbox (
  seq        bigint generated always as identity primary key,
  kind       text not null check (kind in ('status', 'dead')),
  keys       text[] not null,
  "values"   bytea[] not null,
  headers    jsonb,
  created_at timestamptz not null default clock_timestamp(),
  constraint outbox_lengths check (cardinality(keys) > 0 and cardinality(keys) = cardinality("values"))
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0,
        toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_scale_factor = 0,
        toast.autovacuum_vacuum_cost_delay = 0);
alter table dispatcher.outbox alter column "values" set storage external;
alter table dispatcher.outbox alter column keys set storage external;

-- Every routing document ever applied. The highest version is the current one;
-- going back applies the old document as a new version.
create table dispatcher.routing_versions (
  version    bigint primary key check (version > 0),
  author     text not null,
  reason     text not null default '',
  created_at timestamptz not null default now(),
  document   text not null
);
