-- The login of the database stands beside the author that was told, as in operator_actions: whoever
-- uses the database directly may claim any name. It is null where it was not recorded yet.
alter table dispatcher.routing_versions add login text;
alter table dispatcher.ramps add login text;
alter table dispatcher.ramp_moves add login text;

-- note_login keeps an insert from claiming another login than its own.
create function dispatcher.note_login() returns trigger language plpgsql as $$
begin
  new.login := session_user;
  return new;
end
$$;

create trigger note_login before insert on dispatcher.routing_versions
  for each row execute function dispatcher.note_login();
create trigger note_login before insert on dispatcher.ramps
  for each row execute function dispatcher.note_login();
create trigger note_login before insert on dispatcher.ramp_moves
  for each row execute function dispatcher.note_login();
create trigger note_login before insert on dispatcher.operator_actions
  for each row execute function dispatcher.note_login();

create or replace view audit.routing_versions as
  select version, author, reason, created_at, document, effects, coalesce(base, version) as base,
    login
  from dispatcher.routing_versions;

-- Changing requests of the API that named an Idempotency-Key, and what was answered: one that comes
-- again gets that answer. Without a status it is under way, or was cut off. Rows are kept for a day.
create table dispatcher.api_requests (
  principal text not null,
  key       text not null,
  digest    bytea not null, -- of method, path and body
  at        timestamptz not null default clock_timestamp(),
  status    integer,
  header    text,
  body      bytea,
  primary key (principal, key)
);
create index api_requests_at on dispatcher.api_requests (at);
