-- The figures of closed days go into the log of hashes too, and the login that applied a version.

-- closings: the look has no messages but closings, namely those made from from_at to to_at. Its
-- leaves stay when messages are dropped, because figures stay.
alter table dispatcher.seals add column if not exists closings boolean not null default false;
create index if not exists seals_closings on dispatcher.seals (number) where closings;

create or replace view audit.seals as
  select number, from_at, to_at, at, again, size, leaves, nodes, checkpoint, closings
  from dispatcher.seals;

create or replace function dispatcher.forget_leaves(before timestamptz) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
begin atomic
  update dispatcher.seals set leaves = '' from dispatcher.least_kept k
  where octet_length(leaves) > 0 and to_at < least(before, clock_timestamp() - k.facts) and not closings;
end;

-- One row for each revision of a closed day, with hashes of the closing and of its figures. Rows of
-- figures are hashed one by one, and the hashes put in their own order: it depends on no collation.
-- A revision that has figures and no closing is here too: its at and intake are null.
create or replace view facts.closing_evidence as
  select k.day, k.revision, c.at,
    case when c.day is not null then dispatcher.half_hash(json_build_array(c.day, c.revision, c.zone,
      dispatcher.micros(c.from_at), dispatcher.micros(c.to_at), dispatcher.micros(c.at), c.changes, c.figures)) end
      as intake,
    (select substring(sha256(string_agg(h, '' order by h)) from 1 for 16)
      from (select dispatcher.half_hash(json_build_array(dispatcher.micros(hour), routing_version, route, channel,
          tenant, calling_code, messages, rejected, failed, unknown, open, segments, sender, cause)) as h
        from dispatcher.choice_figures f where f.day = k.day and f.revision = k.revision) f) as choices,
    (select substring(sha256(string_agg(h, '' order by h)) from 1 for 16)
      from (select dispatcher.half_hash(json_build_array(dispatcher.micros(hour), routing_version, route, channel,
          reason, currency, tenant, calling_code, attempts, submitted, accepted, rejected, refused, throttled,
          unknown, unsent, pending, delivered, undelivered, no_receipt, segments, cost_micros, unknown_segments,
          unknown_micros, delivered_segments, delivered_micros, sender)) as h
        from dispatcher.attempt_figures f where f.day = k.day and f.revision = k.revision) f) as attempts,
    (select substring(sha256(string_agg(h, '' order by h)) from 1 for 16)
      from (select dispatcher.half_hash(json_build_array(dispatcher.micros(hour), routing_version, route,
          first_choice, channel, cause, tenant, calling_code, messages, sender, currency, segments, cost_micros,
          text_segments)) as h
        from dispatcher.carried_figures f where f.day = k.day and f.revision = k.revision) f) as carried
  from (
    select day, revision from dispatcher.closings
    union select day, revision from dispatcher.choice_figures
    union select day, revision from dispatcher.attempt_figures
    union select day, revision from dispatcher.carried_figures) k
  left join dispatcher.closings c on c.day = k.day and c.revision = k.revision;

-- evidence is 1 for versions that are there already: they were sealed without their login. It is 2
-- for those to come, whose login is hashed.
alter table dispatcher.routing_versions add column if not exists evidence smallint not null default 1;
alter table dispatcher.routing_versions alter column evidence set default 2;

create or replace view facts.version_evidence as
  select version, created_at,
    dispatcher.half_hash(case when evidence = 1 or login is null
      then json_build_array(version, author, reason, dispatcher.micros(created_at), base)
      else json_build_array(version, author, reason, dispatcher.micros(created_at), base, login) end) as intake,
    dispatcher.half_hash(json_build_array(document, routes, effects)) as plan
  from dispatcher.routing_versions;
