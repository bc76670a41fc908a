-- The roles of the dispatcher and what each may do. "dispatcher migrate --roles" carries this out;
-- "dispatcher migrate --roles --print" shows it, for an administrator who would rather do it with
-- psql. It may be carried out as often as one likes, and has to be once more after a migration.
--
-- The roles cannot log in. Logins are made members of one: create role alice login in role
-- dispatcher_finance. They belong to the whole server; what is granted here is in this database.
--
--   dispatcher_owner    owns the schemas; may alter them
--   dispatcher_app      what "dispatcher run" and the commands of operators need
--   dispatcher_finance  views without numbers and texts: report, explain, audit verify; signs off what
--                       came of comparing them with an invoice
--   dispatcher_auditor  finance, and which draw keys were used
do $$
declare
  wanted text;
begin
  foreach wanted in array array['dispatcher_owner', 'dispatcher_app', 'dispatcher_finance', 'dispatcher_auditor'] loop
    if not exists (select from pg_roles where rolname = wanted) then
      begin
        execute format('create role %I nologin', wanted);
      exception when duplicate_object or unique_violation then
        null; -- somebody else has made it at the same moment
      end;
    end if;
  end loop;
  if not pg_has_role('dispatcher_auditor', 'dispatcher_finance', 'member') then
    grant dispatcher_finance to dispatcher_auditor;
  end if;
  -- Whoever carries out migrations goes on owning the schemas, as a member of the owner.
  if not pg_has_role('dispatcher_owner', 'member') then
    execute format('grant dispatcher_owner to %I', current_user);
  end if;
end
$$;

-- The owner. It may create schemas, as a migration may need one.
do $$
declare
  one record;
begin
  if not has_database_privilege('dispatcher_owner', current_database(), 'create') then
    execute format('grant create on database %I to dispatcher_owner', current_database());
  end if;
  for one in
    select 'schema' as kind, quote_ident(nspname) as name from pg_namespace
    where nspname in ('dispatcher', 'audit', 'facts') and nspowner <> 'dispatcher_owner'::regrole
  loop
    execute format('alter %s %s owner to dispatcher_owner', one.kind, one.name);
  end loop;
  for one in
    select case c.relkind when 'v' then 'view' when 'S' then 'sequence' when 'c' then 'type' else 'table' end as kind,
      format('%I.%I', n.nspname, c.relname) as name
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('dispatcher', 'audit', 'facts') and c.relkind in ('r', 'p', 'v', 'S', 'c')
      and c.relowner <> 'dispatcher_owner'::regrole
      -- the sequence of an identity column belongs to its table
      and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
        and d.refclassid = 'pg_class'::regclass and d.deptype = 'i' and c.relkind = 'S')
    order by c.relkind = 'v', c.oid
  loop
    execute format('alter %s %s owner to dispatcher_owner', one.kind, one.name);
  end loop;
  for one in
    select p.oid::regprocedure::text as name
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = 'dispatcher' and p.proowner <> 'dispatcher_owner'::regrole
  loop
    execute format('alter function %s owner to dispatcher_owner', one.name);
  end loop;
end
$$;

-- What was granted before, perhaps by an earlier release, goes first.
do $$
declare
  whose constant text := 'dispatcher_app, dispatcher_finance, dispatcher_auditor';
  name text;
begin
  foreach name in array array['dispatcher', 'audit', 'facts'] loop
    execute format('revoke all on schema %I from %s', name, whose);
    execute format('revoke all on all tables in schema %I from %s', name, whose);
    execute format('revoke all on all sequences in schema %I from %s', name, whose);
    execute format('revoke all on all functions in schema %I from %s', name, whose);
  end loop;
end
$$;

-- The dispatcher itself. It may read everything and add rows. It may change and delete what the
-- statements of the ledger change and delete, column by column, and nothing else: what an id, a
-- number, a time of receipt, a version, a price list or an author was stays what it was.
grant usage on schema dispatcher, audit, facts to dispatcher_app;
grant select on all tables in schema dispatcher to dispatcher_app;
grant select on all tables in schema audit to dispatcher_app;
grant select on all tables in schema facts to dispatcher_app;
grant usage on sequence dispatcher.message_numbers to dispatcher_app;
grant execute on function dispatcher.make_days, dispatcher.index_ids, dispatcher.summarise, dispatcher.drop_day,
  dispatcher.forget_day, dispatcher.release_dead to dispatcher_app;

-- Messages and attempts: what becomes of them, and never what they are. No row is deleted; days go
-- as a whole, by drop_day. The plan of a message is made anew while it waits.
grant insert, update (attempts, rounds, possible_duplicate, state, reason, next_at, finished_at, tried, seen,
  waiting_since, waits_for, waits, pinned, same_key_until, same_key, same_key_account, parts_cut, parts_left,
  route, routing_version, draw, draw_size, draw_key_id, first_choice, segments, alphabet)
  on dispatcher.messages to dispatcher_app;
grant insert, update (price_micros, segments, settled_at, held_until, receipts_within, answers, receipts_owed,
  denied_parts, outcome, provider_reference, provider_code, cut_short, unfit, freed, proved, receipt_at, delivered_at,
  contradicted_at, receipt_state, receipt_cause, receipt_code)
  on dispatcher.attempts to dispatcher_app;
-- Numbers and texts come and go; none is changed.
grant insert, delete, truncate on dispatcher.payloads to dispatcher_app;
grant insert, truncate on dispatcher.ids_0, dispatcher.ids_1 to dispatcher_app;
grant update on dispatcher.id_turns to dispatcher_app;
grant update (payloads, dropping, kept, living, looked_at) on dispatcher.days to dispatcher_app;
grant insert, update, delete on dispatcher.due, dispatcher.held to dispatcher_app;

-- Counters. Of a past window no figure is changed: pace, which none of the views shows, is here
-- because rows can be locked only by who may update one of their columns.
grant insert, delete, update (position, configured_max, active_max, active, last_assigned, removed_at, ease_rate,
  ease_since, ease_until) on dispatcher.channels to dispatcher_app;
grant insert, delete, update (configured_max, max, window_start, granted, reserved, next_at, pace, taken)
  on dispatcher.limits to dispatcher_app;
grant insert, delete, update (pace) on dispatcher.limit_history to dispatcher_app;
grant insert on dispatcher.limit_restarts, dispatcher.top_ups to dispatcher_app;
grant insert, update, delete on dispatcher.cursors to dispatcher_app;

-- Routing. A version stays what it is; waking only says whom it has still to be told to.
grant insert, update (waking) on dispatcher.routing_versions to dispatcher_app;
grant insert, update (step, next_at, state, held, changed_by, version, changed_at) on dispatcher.ramps
  to dispatcher_app;
grant insert on dispatcher.ramp_moves to dispatcher_app;

-- What finance reports of days that are over: corrections are added.
grant insert on dispatcher.closings, dispatcher.choice_figures, dispatcher.attempt_figures,
  dispatcher.carried_figures to dispatcher_app;

-- The log of hashes only grows.
grant insert on dispatcher.seals to dispatcher_app;
grant execute on function dispatcher.forget_leaves to dispatcher_app;

-- Receipts, and submissions of which nobody knows whether they were taken.
grant insert, delete, update (message_seq, attempt, part, state, cause, code, received_at, due_at, look_at)
  on dispatcher.receipts to dispatcher_app;
grant insert, delete, update (due_at) on dispatcher.awaited to dispatcher_app;
grant insert, delete, update (last, step, next_at, asked, closed_at, verdict, author, note, part_taken)
  on dispatcher.ambiguous to dispatcher_app;

-- Subscribers. Entries of the opt-out lists end, and are never deleted.
grant insert, update (heard_at, sent_at, until, ended_by, ended_channel, ended_author, ended_reason)
  on dispatcher.opt_outs to dispatcher_app;
grant insert, delete on dispatcher.inbound_parts, dispatcher.inbound_outbox to dispatcher_app;
grant insert, delete, update (until) on dispatcher.inbound_seen to dispatcher_app;
grant insert, update (messages, unended) on dispatcher.erasures to dispatcher_app;

-- What guards found. It stays what it is.
grant insert on dispatcher.guard_trips to dispatcher_app;

-- What operators did. It stays what it is.
grant insert on dispatcher.operator_actions to dispatcher_app;

-- Answers to requests of the API, which are given again when a request comes again.
grant insert, delete, update (status, header, body) on dispatcher.api_requests to dispatcher_app;

-- Processes, and notices on their way to Kafka.
grant insert, delete, update (last_seen, beating_since, oldest_open_at, left_at, counts, state)
  on dispatcher.instances to dispatcher_app;
grant insert, update (instance, host, version, taken_at, working_from, left_at, early_ends) on dispatcher.identities
  to dispatcher_app;
grant insert, delete on dispatcher.outbox to dispatcher_app;

-- Finance reads views alone, none of which has a number or a text. The auditor is finance and may
-- know which draw keys were used; the keys themselves are in a file, and in no database.
grant usage on schema audit, facts to dispatcher_finance;
grant select on all tables in schema audit to dispatcher_finance;
grant select on all tables in schema facts to dispatcher_finance;
revoke select on audit.draw_keys from dispatcher_finance;
grant select on audit.draw_keys to dispatcher_auditor;

-- Whoever compares the ledger with an invoice adds what came of it, through views. id, at and login are
-- not theirs to say, and what is there stays.
grant insert (channel, file_digest, from_at, to_at, revision, complete, author, reason, lines, matched, ours_only,
  theirs_only, differences, ambiguous, resolved) on audit.reconciliations to dispatcher_app, dispatcher_finance;
grant insert on audit.reconciliation_totals, audit.reconciliation_differences
  to dispatcher_app, dispatcher_finance;

-- The tables of days have the grants of the tables that they belong to.
do $$
declare
  one record;
begin
  for one in select inhparent::regclass as whole, inhrelid::regclass as part from pg_inherits
    where inhparent in ('dispatcher.messages'::regclass, 'dispatcher.payloads'::regclass,
      'dispatcher.attempts'::regclass, 'dispatcher.past_ids'::regclass)
  loop
    perform dispatcher.copy_grants(one.whole, one.part);
  end loop;
end
$$;
