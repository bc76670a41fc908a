-- What the floor writes: facts that are appended and never rewritten, beside a row of counters for
-- each channel. Only for a run of bench, which drops the schema at its end.
create schema floor;

-- The id of a message is taken once.
create table floor.ids (
  id  text primary key,
  seq bigint not null generated always as identity
);

-- What was received, and the first decision about it. Defaults stand for the results of decisions,
-- of the same size.
create table floor.messages (
  seq             bigint primary key,
  id              text not null,
  lane            text not null,
  topic           text not null,
  kafka_partition int not null,
  kafka_offset    bigint not null,
  digest          bigint not null default 1,
  number_hash     bytea not null default '\x000102030405060708090a0b0c0d0e0f',
  country         text not null default 'GB',
  produced_at     timestamptz not null,
  expires_at      timestamptz not null,
  claimed_at      timestamptz not null default now(),
  route           text not null default 'floor',
  routing_version bigint not null default 1,
  draw            bigint not null default 0,
  channel         text not null,
  reason          text not null default 'first_choice',
  segments        smallint not null default 1,
  price_micros    bigint not null default 30000,
  currency        text not null default 'EUR',
  instance        bigint not null default 1
);

create table floor.payloads (
  seq      bigint primary key,
  envelope bytea not null
);

create table floor.outcomes (
  seq          bigint not null,
  attempt      smallint not null default 1,
  nr           smallint not null default 1,
  channel      text not null,
  outcome      text not null default 'accepted',
  code         text not null,
  reference    text not null,
  segments     smallint not null default 1,
  price_micros bigint not null default 30000,
  settled_at   timestamptz not null default now(),
  primary key (seq, attempt, nr)
);

create table floor.receipts (
  seq         bigint not null,
  attempt     smallint not null,
  part        smallint not null,
  state       text not null,
  code        text not null,
  received_at timestamptz not null,
  primary key (seq, attempt, part, state)
);

create table floor.channels (
  channel text primary key,
  active  bigint not null default 0,
  claimed bigint not null default 0
) with (fillfactor = 50);

-- Status events of one transaction, until they are published. They are much alike: compressed they
-- take a tenth of the WAL, and no more CPU.
create table floor.outbox (
  seq        bigint generated always as identity primary key,
  keys       text[] not null,
  "values"   bytea[] not null,
  created_at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0,
        toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_scale_factor = 0,
        toast.autovacuum_vacuum_cost_delay = 0);
do $$
begin
  alter table floor.outbox alter keys set compression lz4, alter "values" set compression lz4;
exception when feature_not_supported then -- a build without lz4
  alter table floor.outbox alter keys set storage external, alter "values" set storage external;
end
$$;
