-- Subscribers: opt-outs, the messages that they send, and erasures.

-- recipient is a hash of a number and a tenant, used wherever the number itself is not needed. It
-- is a pseudonym: somebody who tries all numbers can find the number. Recipient in package ledger
-- computes the same; a test compares them.
create function dispatcher.recipient(tenant text, number text) returns bigint
language sql immutable strict parallel safe
return coalesce(nullif(('x' || encode(substr(sha256(
  convert_to(tenant, 'UTF8') || '\x00'::bytea || convert_to(ltrim(number, '+'), 'UTF8')), 1, 8),
  'hex'))::bit(64)::bigint, 0), 1);

-- number_of reads the number from an envelope; null if it cannot.
create function dispatcher.number_of(envelope bytea) returns text
language plpgsql immutable
as $$
begin
  return convert_from(envelope, 'UTF8')::json ->> 'to';
exception when data_exception then
  return null;
end
$$;

-- One row per opt-out of a recipient from the messages of a tenant. Rows are never deleted; until
-- is when the opt-out ended. Claims read the index opt_outs_current, which has the present ones.
create table dispatcher.opt_outs (
  seq           bigint generated always as identity primary key,
  tenant        text not null,
  recipient     bigint not null,
  since         timestamptz not null default clock_timestamp(),
  source        text not null check (source in ('keyword', 'command', 'import')),
  channel       text not null default '',
  author        text not null default '',
  login         text, -- see note_opt_out_logins
  reason        text not null default '',
  -- The latest STOP: when it arrived, by the database's clock, and when it was sent, by the
  -- provider's clock if that is known. An older START does not end the opt-out.
  heard_at      timestamptz not null default clock_timestamp(),
  sent_at       timestamptz,
  until         timestamptz,
  ended_by      text check (ended_by in ('keyword', 'command')),
  ended_channel text not null default '',
  ended_author  text not null default '',
  ended_login   text, -- null while the opt-out holds
  ended_reason  text not null default '',
  constraint opt_outs_ended check ((until is null) = (ended_by is null)),
  constraint opt_outs_until check (until >= since)
);
create unique index opt_outs_current on dispatcher.opt_outs (recipient) where until is null;
create index opt_outs_recipient on dispatcher.opt_outs (recipient, seq);

-- note_opt_out_logins is dispatcher.note_login for an opt-out, which has two authors: one of its
-- beginning and one of its end.
create function dispatcher.note_opt_out_logins() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    new.login := session_user;
    new.ended_login := case when new.until is not null then session_user end;
  else
    new.login := old.login;
    new.ended_login := case when old.until is null and new.until is not null then session_user
      else old.ended_login end;
  end if;
  return new;
end
$$;
create trigger note_login before insert or update on dispatcher.opt_outs
  for each row execute function dispatcher.note_opt_out_logins();

-- Parts of incoming messages that wait for the other parts. They are deleted when the message is
-- complete, or after a timeout.
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
create index inbound_parts_group on dispatcher.inbound_parts
  (channel, sender, recipient, grp, parts);
create index inbound_parts_booked_at on dispatcher.inbound_parts (booked_at);

-- Hashes of what was stored lately, so that a repetition by the provider is dropped.
create table dispatcher.inbound_seen (
  channel text collate "C" not null,
  mark    bytea not null,
  until   timestamptz not null,
  primary key (channel, mark)
);
create index inbound_seen_until on dispatcher.inbound_seen (until);

-- Incoming messages on their way to Kafka. They have an outbox of their own, so that status events
-- do not wait for sms.inbound when nobody has created that topic.
create table dispatcher.inbound_outbox (
  seq        bigint generated always as identity primary key,
  keys       text[] not null,
  "values"   bytea[] not null,
  created_at timestamptz not null default now(),
  constraint inbound_outbox_lengths check (cardinality(keys) > 0
    and cardinality(keys) = cardinality("values"))
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- Erasures of a number and its texts, at the request of a subscriber. The number is not stored.
create table dispatcher.erasures (
  id          bigint generated always as identity primary key,
  at          timestamptz not null default clock_timestamp(),
  author      text not null,
  login       text, -- see dispatcher.note_login
  reason      text not null,
  tenant      text, -- null for all tenants
  number_hmac bigint not null, -- as in messages
  messages    bigint not null default 0,
  parts       bigint not null default 0, -- of incoming messages
  unended     bigint not null default 0  -- messages that had not ended, so they were not erased
);
create trigger note_login before insert on dispatcher.erasures
  for each row execute function dispatcher.note_login();
