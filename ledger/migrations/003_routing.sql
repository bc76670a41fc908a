-- Routing versions and ramps.

-- Every routing document ever applied. The highest version is the current one; going back applies
-- the old document as a new version.
--
-- A version is a document and the effects on it: the weights that health weighting put in place of
-- the document's. base is the version that brought the document. It is null for the version itself.
-- A new document keeps the effects, at the same part of its weights. routes says what rules the
-- document has, for those who cannot read YAML: see audit.weights. waking is set while messages
-- that wait are still to be told of the version; its index is empty almost always.
create table dispatcher.routing_versions (
  version    bigint primary key check (version > 0),
  author     text not null,
  reason     text not null default '',
  created_at timestamptz not null default now(),
  document   text not null,
  routes     jsonb not null default '[]',
  effects    jsonb,
  base       bigint,
  waking     boolean not null default false,
  constraint routing_versions_base check (base between 1 and version),
  constraint routing_versions_effects check (effects is null or version > 1)
);
create index routing_versions_waking on dispatcher.routing_versions (version) where waking;

-- One row per ramp: a route's weights on their way from from_weights to to_weights, both
-- an object of channel and decimal text, in equal steps. version is the routing version of
-- the last step that was made. held says why a ramp does not go on, changed_by who changed
-- its state last.
create table dispatcher.ramps (
  id             bigint generated always as identity primary key,
  route          text not null check (route <> ''),
  from_weights   jsonb not null check (jsonb_typeof(from_weights) = 'object'),
  to_weights     jsonb not null check (jsonb_typeof(to_weights) = 'object'),
  steps          integer not null check (steps > 0),
  step           integer not null default 0,
  every          interval not null check (every > interval '0'),
  next_at        timestamptz,
  state          text not null default 'running' check (state in ('running', 'held', 'done', 'cancelled', 'superseded')),
  held           text not null default '',
  max_errors     double precision not null default 0 check (max_errors between 0 and 1),
  max_deviation  double precision not null default 0 check (max_deviation between 0 and 1),
  least_messages bigint not null default 0 check (least_messages >= 0),
  author         text not null,
  reason         text not null default '',
  changed_by     text not null,
  version        bigint not null default 0,
  created_at     timestamptz not null default now(),
  changed_at     timestamptz not null default now(),
  constraint ramps_step check (step between 0 and steps),
  constraint ramps_done check ((step = steps) = (state = 'done')),
  constraint ramps_next_at check ((next_at is not null) = (state = 'running')),
  constraint ramps_held check (case state when 'running' then held = '' when 'done' then held = '' when 'held' then held <> '' else true end),
  constraint ramps_version check ((version > 0) = (step > 0))
);

-- At most one ramp moves the weights of a route at a time.
create unique index ramps_one_per_route on dispatcher.ramps (route) where state in ('running', 'held');

-- What happened to ramps, append-only: who held, resumed or ended one, and why, also after
-- its row has moved on. version is the routing version in force by it, 0 before the first step.
create table dispatcher.ramp_moves (
  seq     bigint generated always as identity primary key,
  ramp    bigint not null references dispatcher.ramps (id),
  at      timestamptz not null default clock_timestamp(),
  author  text not null,
  move    text not null check (move in ('started', 'step', 'done', 'held', 'resumed', 'cancelled', 'superseded')),
  step    integer not null,
  version bigint not null,
  reason  text not null
);
create index ramp_moves_ramp on dispatcher.ramp_moves (ramp);
