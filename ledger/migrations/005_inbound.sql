-- Who does not want to be written to any more, and what subscribers send.

-- recipient is what stands for a number of a tenant wherever the number itself is not needed. It
-- is a pseudonym: whoever tries all numbers finds out which ones are meant. Package ledger computes the same;
-- a test holds the two together.
create function dispatcher.recipient(tenant text, number text) returns bigint
language sql immutable strict parallel safe
return coalesce(nullif(('x' || encode(substr(sha256(
  convert_to(tenant, 'UTF8') || '\x00'::bytea || convert_to(ltrim(number, '+'), 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint, 0), 1);

-- number_of reads the number from an envelope. It is null for one that cannot be read.
create function dispatcher.number_of(envelope bytea) returns text
language plpgsql immutable
as $$
begin
  return convert_from(envelope, 'UTF8')::json ->> 'to';
exception when data_exception then
  return null;
end
$$;

-- One row per opt-out of a recipient from the messages of a tenant. It is kept for ever: until
-- says when the recipient was taken off the list again. The index holds those that are on it, each once, and
-- is what claims look into. heard_at is when the latest STOP arrived, by the database's clock, and sent_at when
-- it was sent, by the provider of the channel, where that says so: a START that is older does not end it.
create table dispatcher.opt_outs (
  seq           bigint generated always as identity primary key,
  tenant        text not null,
  recipient     bigint not null,
  since         timestamptz not null default clock_timestamp(),
  source        text not null check (source in ('keyword', 'command', 'import')),
  channel       text not null default '',
  author        text not null default '',
  reason        text not null default '',
  heard_at      timestamptz not null default clock_timestamp(),
  sent_at       timestamptz,
  until         timestamptz,
  ended_by      text check (ended_by in ('keyword', 'command')),
  ended_channel text not null default '',
  ended_author  text not null default '',
  ended_reason  text not null default '',
  constraint opt_outs_ended check ((until is null) = (ended_by is null)),
  constraint opt_outs_until check (until >= since)
);
create unique index opt_outs_current on dispatcher.opt_outs (recipient) where until is null;
create index opt_outs_recipient on dispatcher.opt_outs (recipient, seq);

-- Parts of messages that wait for the others. A part leaves with its message, or after a time without.
create table dispatcher.inbound_parts (
  seq         bigint generated always as identity primary key,
  id          text not null,
  channel     text collate "C" not null,
  sender      text collate "C" not null,
  recipient   text collate "C" not null,
  grp         integer not null,
  parts       smallint not null check (parts > 1),
  part        smallint not null,
  body        text not null,
  received_at timestamptz not null,
  booked_at   timestamptz not null default now(),
  constraint inbound_parts_part check (part >= 0 and part < parts)
);
create index inbound_parts_group on dispatcher.inbound_parts (channel, sender, recipient, grp, parts);
create index inbound_parts_booked_at on dispatcher.inbound_parts (booked_at);

-- What was booked lately, by a hash, so that what a provider sends again is not booked again.
create table dispatcher.inbound_seen (
  channel text collate "C" not null,
  mark    bytea not null,
  until   timestamptz not null,
  primary key (channel, mark)
);
create index inbound_seen_until on dispatcher.inbound_seen (until);

-- Messages of subscribers on their way to Kafka. They have an outbox of their own: the publisher of the previous
-- release takes every kind that it does not know for a status event, and status events do not wait for a topic that
-- nobody has created.
create table dispatcher.inbound_outbox (
  seq        bigint generated always as identity primary key,
  keys       text[] not null,
  "values"   bytea[] not null,
  created_at timestamptz not null default now(),
  constraint inbound_outbox_lengths check (cardinality(keys) > 0 and cardinality(keys) = cardinality("values"))
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- Requests of subscribers to erase their number and texts. Neither is kept here: number_hmac is the
-- keyed hash that messages have. tenant is null for all. unended is how many messages had not ended,
-- and were left.
create table dispatcher.erasures (
  id          bigint generated always as identity primary key,
  at          timestamptz not null default clock_timestamp(),
  author      text not null,
  reason      text not null,
  tenant      text,
  number_hmac bigint not null,
  messages    bigint not null default 0,
  parts       bigint not null default 0,
  unended     bigint not null default 0
);
