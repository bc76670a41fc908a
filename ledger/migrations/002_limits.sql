-- Channels, limits and cursors: the hot rows. Each claim rewrites a handful of them, so they get
-- pages with much room (old versions are pruned in place) and a vacuum that comes early.
--
-- active_max follows configured_max, except after it was lowered below what is under way: then it
-- sinks with active until it gets there. 0 means no bound. ease_* say how far the channel's rate is
-- below its limits since its provider last asked to slow down: to ease_rate at ease_since,
-- recovering since; nothing is submitted before ease_until.
create table dispatcher.channels (
  channel        text collate "C" primary key,
  position       integer not null default 0,
  configured_max bigint not null default 0 check (configured_max >= 0),
  active_max     bigint not null default 0,
  active         bigint not null default 0,
  last_assigned  timestamptz,
  removed_at     timestamptz,
  ease_rate      double precision,
  ease_since     timestamptz,
  ease_until     timestamptz,
  constraint channels_active check (0 <= active and (active_max = 0 or active <= active_max)),
  constraint channels_ease check (ease_rate > 0 and ease_rate <= 1),
  constraint channels_eased check ((ease_rate is null) = (ease_since is null))
) with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- limits_granted is guarantee 3: whatever a process computes, no more than max is granted. max is
-- configured_max, except in a window in which it was lowered below granted.
--
-- A limit of scope channel counts all messages of its channel; a narrower one those of a tenant
-- ("tenant:shop") or to a prefix ("prefix:+44"). channel is empty for a limit over all channels.
-- Limits in money count micros of currency. next_at is the release time of the next unit of a paced
-- limit, or the theoretical arrival time of a sliding one, and pace the nanoseconds between two
-- units at which it was made. taken holds what is counted apart in this window, as an object of
-- tally and units. since is when this limit began.
create table dispatcher.limits (
  channel        text collate "C" not null,
  scope          text collate "C" not null default 'channel',
  window_seconds integer not null check (window_seconds > 0),
  unit           text collate "C" not null check (unit in ('messages', 'segments', 'money')),
  configured_max bigint not null check (configured_max >= 0),
  max            bigint not null,
  window_start   timestamptz not null default 'epoch',
  granted        bigint not null default 0,
  reserved       bigint not null default 0 check (reserved >= 0),
  currency       text,
  next_at        timestamptz,
  pace           bigint,
  taken          jsonb,
  since          timestamptz not null default now(),
  primary key (channel, scope, window_seconds, unit),
  constraint limits_granted check (granted between 0 and max),
  constraint limits_max check (max <= greatest(configured_max, granted)),
  constraint limits_currency check ((unit = 'money') = (currency is not null)),
  constraint limits_pace check (pace > 0),
  constraint limits_scope check (channel <> '' or scope <> 'channel'),
  constraint limits_taken check (jsonb_typeof(taken) = 'object')
) with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- Windows that were left, if anything was granted in them. A limit that is removed takes next_at,
-- pace and taken along, so that it goes on where it stood when it comes back. since is that of the
-- limit; until is set when it was removed in this window.
create table dispatcher.limit_history (
  channel        text collate "C" not null,
  scope          text collate "C" not null,
  window_seconds integer not null,
  unit           text collate "C" not null,
  window_start   timestamptz not null,
  max            bigint not null,
  granted        bigint not null,
  reserved       bigint not null default 0,
  currency       text,
  next_at        timestamptz,
  pace           bigint,
  taken          jsonb,
  since          timestamptz,
  until          timestamptz,
  constraint limit_history_granted check (granted between 0 and max)
);
-- One window may have had limits in two currencies, one after the other.
create unique index limit_history_key on dispatcher.limit_history
  (channel, scope, window_seconds, unit, window_start, coalesce(currency, ''));
create index limit_history_age on dispatcher.limit_history (window_seconds, window_start); -- for dropping old ones

-- Windows that began in the future, because the database's clock was ahead when they were opened,
-- and that an operator has started again: from which window to which, with what was granted in
-- each. set_aside are the windows that had been left and would be opened a second time, as objects
-- of window_start, max and granted.
create table dispatcher.limit_restarts (
  id             bigint generated always as identity primary key,
  channel        text collate "C" not null,
  scope          text collate "C" not null,
  window_seconds integer not null,
  unit           text collate "C" not null,
  restarted_at   timestamptz not null default clock_timestamp(),
  version        bigint not null,
  author         text not null,
  reason         text not null,
  was_start      timestamptz not null,
  was_granted    bigint not null,
  window_start   timestamptz not null,
  granted        bigint not null,
  set_aside      jsonb,
  constraint limit_restarts_back check (window_start < was_start)
);

-- Where the round robin of each route stands, for all instances together: locked after the limits.
-- channel had the last turn and stood at position among the route's members, from 0; before the
-- first turn it is empty and position -1. members are those of the route in configured order: who
-- has the next turn when channel itself is taken out is told by those before it.
create table dispatcher.cursors (
  route    text collate "C" primary key,
  channel  text not null default '',
  position integer not null default -1,
  members  text[] not null default '{}',
  constraint cursors_position check (position >= -1 and (position = -1) = (channel = ''))
) with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);
