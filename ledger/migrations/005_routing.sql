-- Routing versions, ramps and guards.

-- Every routing document that was ever applied. The highest version is in force. To go back to an
-- earlier document is to apply it as a new version.
--
-- A version is a document and the effects on it: weights that health weighting put in place of the
-- document's. A new document keeps the effects as the same fraction of its weights.
create table dispatcher.routing_versions (
  version    bigint primary key check (version > 0),
  author     text not null,
  login      text, -- see dispatcher.note_login
  reason     text not null default '',
  created_at timestamptz not null default now(),
  document   text not null,
  routes     jsonb not null default '[]', -- the routes of the document as JSON, for audit.weights
  effects    jsonb,
  base       bigint, -- the version that brought the document; null for this one
  waking     boolean not null default false, -- waiting messages are still to be woken for it
  -- What its hash in dispatcher.seals covers: 2 with login, 1 without. Rows from before login was
  -- hashed have 1.
  evidence   smallint not null default 2,
  constraint routing_versions_base check (base between 1 and version),
  constraint routing_versions_effects check (effects is null or version > 1)
);
create index routing_versions_waking on dispatcher.routing_versions (version) where waking;
create trigger note_login before insert on dispatcher.routing_versions
  for each row execute function dispatcher.note_login();

-- One row per ramp: it moves the weights of a route in equal steps.
create table dispatcher.ramps (
  id             bigint generated always as identity primary key,
  route          text not null check (route <> ''),
  from_weights   jsonb not null check (jsonb_typeof(from_weights) = 'object'), -- {channel: decimal}
  to_weights     jsonb not null check (jsonb_typeof(to_weights) = 'object'),
  steps          integer not null check (steps > 0),
  step           integer not null default 0,
  every          interval not null check (every > interval '0'),
  next_at        timestamptz,
  state          text not null default 'running',
  held           text not null default '', -- why it is held
  max_errors     double precision not null default 0 check (max_errors between 0 and 1),
  max_deviation  double precision not null default 0 check (max_deviation between 0 and 1),
  least_messages bigint not null default 0 check (least_messages >= 0),
  author         text not null,
  login          text, -- see dispatcher.note_login
  reason         text not null default '',
  changed_by     text not null,             -- who changed its state last
  version        bigint not null default 0, -- the routing version of its last step
  created_at     timestamptz not null default now(),
  changed_at     timestamptz not null default now(),
  constraint ramps_state_check check (state in ('running', 'held', 'done', 'cancelled',
    'superseded')),
  constraint ramps_step check (step between 0 and steps),
  constraint ramps_done check ((step = steps) = (state = 'done')),
  constraint ramps_next_at check ((next_at is not null) = (state = 'running')),
  constraint ramps_held check (case state when 'running' then held = '' when 'done' then held = ''
    when 'held' then held <> '' else true end),
  constraint ramps_version check ((version > 0) = (step > 0))
);
-- At most one ramp moves the weights of a route at a time.
create unique index ramps_one_per_route on dispatcher.ramps (route)
  where state in ('running', 'held');
create trigger note_login before insert on dispatcher.ramps
  for each row execute function dispatcher.note_login();

-- What happened to ramps, and why; rows are only added.
create table dispatcher.ramp_moves (
  seq     bigint generated always as identity primary key,
  ramp    bigint not null references dispatcher.ramps (id),
  at      timestamptz not null default clock_timestamp(),
  author  text not null,
  login   text, -- see dispatcher.note_login
  move    text not null,
  step    integer not null,
  version bigint not null, -- the routing version of its last step; 0 before the first
  reason  text not null,
  constraint ramp_moves_move_check check (move in ('started', 'step', 'done', 'held', 'resumed',
    'cancelled', 'superseded'))
);
create index ramp_moves_ramp on dispatcher.ramp_moves (ramp);
create trigger note_login before insert on dispatcher.ramp_moves
  for each row execute function dispatcher.note_login();

-- Trips: occasions on which a guard of the routing document found traffic unlike that of the days
-- before. Rows are only added.
create table dispatcher.guard_trips (
  id       bigint generated always as identity primary key,
  at       timestamptz not null default clock_timestamp(),
  per      text not null check (per in ('tenant', 'calling_code')),
  subject  text not null check (subject <> ''), -- the tenant or the calling code
  action   text not null check (action in ('pause', 'warn')),
  hour     timestamptz not null, -- the beginning of the hour
  seen     bigint not null,      -- its messages up to at
  usual    double precision not null check (usual >= 0), -- their mean in this hour of closed days
  days     integer not null check (days > 0),            -- how many days
  times    bigint not null check (times > 0),
  at_least bigint not null check (at_least > 0),
  version  bigint, -- the routing version that paused it; null if none did or it was paused already
  constraint guard_trips_once unique (hour, per, subject, action),
  constraint guard_trips_seen check (seen >= at_least and seen > times * usual)
);
create index guard_trips_at on dispatcher.guard_trips (at);
