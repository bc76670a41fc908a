-- What operators did by hand, and requests to the HTTP API.

-- Actions on messages and on what is sent; rows are only added. Other changes have tables of their
-- own: routing_versions, ambiguous, opt_outs, erasures, limit_restarts and top_ups.
create table dispatcher.operator_actions (
  id          bigint generated always as identity primary key,
  at          timestamptz not null default clock_timestamp(),
  login       text not null default session_user, -- see dispatcher.note_login
  author      text not null check (author <> ''),
  reason      text not null check (reason <> ''),
  action      text not null,
  subject     text not null,    -- the id of a message, or what was paused
  message_seq bigint,           -- of a replay: the number of the dead record
  new_id      text collate "C", -- and the id under which it was published
  constraint operator_actions_action_check check (action in ('cancel', 'pause', 'resume', 'replay',
    'test')),
  constraint operator_actions_replay check ((action = 'replay') = (message_seq is not null)
    and (message_seq is null) = (new_id is null))
);
create index operator_actions_replays on dispatcher.operator_actions (message_seq, id)
  where message_seq is not null;
create trigger note_login before insert on dispatcher.operator_actions
  for each row execute function dispatcher.note_login();

-- release_dead deletes the id of a dead record from the ids that are recognised, so that the record
-- can be published again with it. It returns whether the id is free. Nothing of a dead record was
-- sent, so nothing can be sent twice. The dispatcher's login can delete no id itself.
--
-- The lock waits for running claims; the caller sets a timeout for it. A claim that begins
-- meanwhile waits, and then finds the id free.
create function dispatcher.release_dead(number bigint) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  dead_id text := (select m.id from dispatcher.messages m
    where m.seq = number and m.state = 'dead' and length(m.id) <= 64);
begin
  if dead_id is null then
    return false;
  end if;
  lock table dispatcher.ids_0, dispatcher.ids_1 in share row exclusive mode;
  delete from dispatcher.ids_0 i where i.id = dead_id and i.seq = number;
  delete from dispatcher.ids_1 i where i.id = dead_id and i.seq = number;
  return not exists (select from dispatcher.ids_0 i where i.id = dead_id)
    and not exists (select from dispatcher.ids_1 i where i.id = dead_id);
end
$$;
revoke execute on function dispatcher.release_dead from public;

-- Changing requests to the API that had an Idempotency-Key, and their answers. A repeated request
-- gets the same answer. A row without status is in progress, or was interrupted. Rows are deleted
-- after a day.
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
