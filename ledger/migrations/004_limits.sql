-- Channels, limits and cursors. Each claim updates a few of these rows. Their pages are kept nearly
-- empty, so that old versions are pruned in place, and vacuum runs early.

create table dispatcher.channels (
  channel        text collate "C" primary key,
  position       integer not null default 0,
  configured_max bigint not null default 0 check (configured_max >= 0),
  -- configured_max, or more after that was lowered below active: then it falls with active.
  -- 0 means unlimited.
  active_max     bigint not null default 0,
  active         bigint not null default 0,
  last_assigned  timestamptz,
  removed_at     timestamptz,
  -- The provider asked to slow down at ease_since. From then on the rate is ease_rate of the limits
  -- and rises again. Nothing is submitted before ease_until.
  ease_rate      double precision,
  ease_since     timestamptz,
  ease_until     timestamptz,
  constraint channels_active check (0 <= active and (active_max = 0 or active <= active_max)),
  constraint channels_ease check (ease_rate > 0 and ease_rate <= 1),
  constraint channels_eased check ((ease_rate is null) = (ease_since is null))
) with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- The current window of each limit. limits_granted is guarantee 3 of DESIGN.md: no process can
-- grant more than max.
create table dispatcher.limits (
  channel        text collate "C" not null, -- empty for a limit over all channels
  -- channel: all messages of the channel; tenant:shop: those of a tenant; prefix:+44: those to
  -- numbers with the prefix
  scope          text collate "C" not null default 'channel',
  window_seconds integer not null check (window_seconds > 0), -- 2147483647 for a budget
  unit           text collate "C" not null check (unit in ('messages', 'segments', 'money')),
  configured_max bigint not null check (configured_max >= 0),
  -- configured_max, or granted in a window in which that was lowered below granted
  max            bigint not null,
  window_start   timestamptz not null default 'epoch',
  granted        bigint not null default 0,
  reserved       bigint not null default 0 check (reserved >= 0),
  currency       text, -- of a limit in money, which counts micros
  -- the release time of the next unit of a paced limit, or the theoretical arrival time of a
  -- sliding one
  next_at        timestamptz,
  pace           bigint, -- nanoseconds between two units, with which next_at was computed
  taken          jsonb,  -- parts of granted that are counted apart: {tally: units}
  since          timestamptz not null default now(), -- when this limit was added
  primary key (channel, scope, window_seconds, unit),
  constraint limits_granted check (granted between 0 and max),
  constraint limits_max check (max <= greatest(configured_max, granted)),
  constraint limits_currency check ((unit = 'money') = (currency is not null)),
  constraint limits_pace check (pace > 0),
  constraint limits_scope check (channel <> '' or scope <> 'channel'),
  constraint limits_taken check (jsonb_typeof(taken) = 'object')
) with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- Past windows in which something was granted. When a limit is removed, next_at, pace and taken are
-- kept here, so that it goes on from there when it is added again.
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
  since          timestamptz, -- of the limit
  until          timestamptz, -- when the limit was removed, if it was in this window
  constraint limit_history_granted check (granted between 0 and max)
);
-- A window may have two currencies: the limit was removed, and added in another one.
create unique index limit_history_key on dispatcher.limit_history
  (channel, scope, window_seconds, unit, window_start, coalesce(currency, ''));
create index limit_history_age on dispatcher.limit_history (window_seconds, window_start);

-- Windows that an operator restarted because they began in the future: the database's clock had
-- been ahead when they were opened.
create table dispatcher.limit_restarts (
  id             bigint generated always as identity primary key,
  channel        text collate "C" not null,
  scope          text collate "C" not null,
  window_seconds integer not null,
  unit           text collate "C" not null,
  restarted_at   timestamptz not null default clock_timestamp(),
  version        bigint not null,
  author         text not null,
  login          text, -- see dispatcher.note_login
  reason         text not null,
  was_start      timestamptz not null,
  was_granted    bigint not null,
  window_start   timestamptz not null, -- the window that took its place
  granted        bigint not null,
  -- past windows that would be opened a second time: [{"window_start", "max", "granted"}]
  set_aside      jsonb,
  constraint limit_restarts_back check (window_start < was_start)
);
create trigger note_login before insert on dispatcher.limit_restarts
  for each row execute function dispatcher.note_login();

-- The rotation of each route, shared by all instances. Locked after the limits.
create table dispatcher.cursors (
  route    text collate "C" primary key,
  channel  text not null default '',     -- had the last turn; empty before the first turn
  position integer not null default -1,  -- of channel among members, from 0
  -- The channels of the route in configured order. If channel is removed, those before it tell
  -- whose turn is next.
  members  text[] not null default '{}',
  constraint cursors_position check (position >= -1 and (position = -1) = (channel = ''))
) with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- Top-ups of prepaid budgets; rows are only added. A budget is a limit in money whose window has no
-- end. Its configured_max is the sum of its top-ups.
create table dispatcher.top_ups (
  id       bigint generated always as identity primary key,
  at       timestamptz not null default clock_timestamp(),
  login    text not null default session_user, -- see dispatcher.note_login
  author   text not null check (author <> ''),
  reason   text not null check (reason <> ''),
  channel  text collate "C" not null,
  scope    text collate "C" not null,
  currency text not null check (currency <> ''),
  micros   bigint not null check (micros <> 0),  -- negative for a correction
  before   bigint not null check (before >= 0),  -- the sum of the top-ups before this one
  granted  bigint not null,                      -- what the budget had granted by then
  key      text unique check (key <> ''), -- from the caller; a second top-up with it is not stored
  constraint top_ups_budget check (scope <> 'tenant:*' and (channel <> '' or scope <> 'channel')),
  -- a correction takes back nothing that was granted
  constraint top_ups_granted check (granted between 0 and least(before, before + micros))
);
create index top_ups_budgets on dispatcher.top_ups (channel, scope, currency, id);
create trigger note_login before insert on dispatcher.top_ups
  for each row execute function dispatcher.note_login();
