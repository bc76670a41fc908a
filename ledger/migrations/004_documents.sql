-- What a new document takes over from the one before it: effects, turns and the duty to
-- wake who waits. It only adds and loosens: the previous release goes on as before.

-- A new document keeps the effects of health weighting, at the same part of its weights.
alter table dispatcher.routing_versions
  drop constraint routing_versions_effects,
  add constraint routing_versions_effects check (effects is null or version > 1);

-- Set while messages that wait are still to be told of the version; its index is empty
-- almost always.
alter table dispatcher.routing_versions add column waking boolean not null default false;
create index routing_versions_waking on dispatcher.routing_versions (version) where waking;

-- The members of the route in configured order, among which channel stands at position:
-- who has the next turn when channel itself is taken out is told by those before it.
alter table dispatcher.cursors add column members text[] not null default '{}';
