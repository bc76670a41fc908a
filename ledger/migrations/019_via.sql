-- How an action came in: command, api, console, control topic, or dispatcher for what a process did
-- by itself. The author of an action by api or console was authenticated; with a command it is only
-- what the user claims. Empty in rows from before this column. Opt-outs have their source, and only
-- a command erases.
alter table dispatcher.routing_versions add column via text not null default '';
alter table dispatcher.ramp_moves add column via text not null default '';
alter table dispatcher.limit_restarts add column via text not null default '';
alter table dispatcher.top_ups add column via text not null default '';
alter table dispatcher.operator_actions add column via text not null default '';
alter table dispatcher.ambiguous add column via text not null default '';

create or replace view facts.routing_versions as
  select version, author, reason, created_at, document, routes, effects, base, login, via
  from dispatcher.routing_versions;
