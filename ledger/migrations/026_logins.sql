-- The login of the database stands beside every author that was told, as in routing_versions: whoever
-- uses the database directly may claim any name. It is null where it was not recorded yet, for an
-- ambiguity that is open, and for the end of an opt-out that still holds.
alter table dispatcher.ambiguous add column if not exists login text;
alter table dispatcher.limit_restarts add column if not exists login text;
alter table dispatcher.opt_outs add column if not exists login text, add column if not exists ended_login text;
alter table dispatcher.erasures add column if not exists login text;

create or replace trigger note_login before insert on dispatcher.limit_restarts
  for each row execute function dispatcher.note_login();
create or replace trigger note_login before insert on dispatcher.erasures
  for each row execute function dispatcher.note_login();

-- An ambiguity gets its author when it is settled, by an update, and so it gets its login. The second
-- condition keeps an update from claiming a login.
create or replace trigger note_login before update on dispatcher.ambiguous
  for each row when (new.closed_at is distinct from old.closed_at or new.login is distinct from old.login)
  execute function dispatcher.note_login();
create or replace trigger note_login_of_new before insert on dispatcher.ambiguous
  for each row when (new.closed_at is not null or new.login is not null)
  execute function dispatcher.note_login();

-- An opt-out has two authors: of its beginning and of its end.
create or replace function dispatcher.note_opt_out_logins() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    new.login := session_user;
    new.ended_login := case when new.until is not null then session_user end;
  else
    new.login := old.login;
    new.ended_login := case when old.until is null and new.until is not null then session_user
      else old.ended_login end;
  end if;
  return new;
end
$$;
create or replace trigger note_login before insert or update on dispatcher.opt_outs
  for each row execute function dispatcher.note_opt_out_logins();

create or replace view audit.ambiguous as
  select m.id as message_id, d.attempt, d.last as last_attempt, a.channel, d.step, d.opened_at, d.until, d.asked,
         d.closed_at, d.verdict, d.author,
         case when has_table_privilege('dispatcher.ambiguous'::regclass, 'select') then d.note else '' end as note,
         d.login
  from dispatcher.ambiguous d
  join dispatcher.messages m on m.seq = d.message_seq
  join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.attempt;

create or replace view audit.limit_restarts as
  select channel, scope, window_seconds, unit, restarted_at, version, author, reason, was_start, was_granted,
    window_start, granted, set_aside, login
  from dispatcher.limit_restarts;

create or replace view audit.opt_outs as
  select tenant, since, source, channel, author, until, ended_by, ended_channel, ended_author, login, ended_login
  from dispatcher.opt_outs;

create or replace view audit.erasures as
  select at, author, tenant, number_hmac, messages, parts, unended, login
  from dispatcher.erasures;

create or replace view audit.ramp_moves as
  select m.ramp, r.route, m.at, m.author, m.move, m.step, r.steps, m.version, m.reason, m.login
  from dispatcher.ramp_moves m join dispatcher.ramps r on r.id = m.ramp;

-- "dispatcher routing history" reads this one.
create or replace view facts.routing_versions as
  select version, author, reason, created_at, document, routes, effects, base, login
  from dispatcher.routing_versions;
