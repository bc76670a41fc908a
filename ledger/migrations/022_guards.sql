-- Traffic that was not like that of the days before, as guards of the routing document found it:
-- append-only. subject is a tenant or a calling code, hour began at the hour of messages that are
-- counted in seen up to at. usual is their mean in that hour of so many closed days. version is the
-- routing version that paused it; null when nothing was paused, or it was paused already.
create table dispatcher.guard_trips (
  id       bigint generated always as identity primary key,
  at       timestamptz not null default clock_timestamp(),
  per      text not null check (per in ('tenant', 'calling_code')),
  subject  text not null check (subject <> ''),
  action   text not null check (action in ('pause', 'warn')),
  hour     timestamptz not null,
  seen     bigint not null,
  usual    double precision not null check (usual >= 0),
  days     integer not null check (days > 0),
  times    bigint not null check (times > 0),
  at_least bigint not null check (at_least > 0),
  version  bigint,
  constraint guard_trips_once unique (hour, per, subject, action),
  constraint guard_trips_seen check (seen >= at_least and seen > times * usual)
);
create index guard_trips_at on dispatcher.guard_trips (at);

create view audit.guard_trips as
  select id, at, per, subject, action, hour, seen, usual, days, times, at_least, version
  from dispatcher.guard_trips;
