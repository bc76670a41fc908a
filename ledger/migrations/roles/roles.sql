-- The dispatcher's roles and their rights. "dispatcher migrate --roles" runs this script, and with
-- --print it prints it for an administrator to run in psql. It may run any number of times. Run it
-- again after each migration.
--
-- The roles cannot log in. Make a login a member of one: create role alice login in role
-- dispatcher_finance. Roles belong to the server, and these grants to this database.
--
--   dispatcher_owner    owns the schemas, and may alter them
--   dispatcher_app      for "dispatcher run" and the commands of operators
--   dispatcher_finance  for report, explain, audit verify and reconcile: reads views without
--                       numbers and texts, and adds signed results of reconcile
--   dispatcher_auditor  as finance, and sees which draw keys were used
do $$
declare
  wanted text;
begin
  foreach wanted in array
    array['dispatcher_owner', 'dispatcher_app', 'dispatcher_finance', 'dispatcher_auditor']
  loop
    if not exists (select from pg_roles where rolname = wanted) then
      begin
        execute format('create role %I nologin', wanted);
      exception when duplicate_object or unique_violation then
        null; -- another session has just created it
      end;
    end if;
  end loop;
  if not pg_has_role('dispatcher_auditor', 'dispatcher_finance', 'member') then
    grant dispatcher_finance to dispatcher_auditor;
  end if;
  -- As a member of the owner, the user who runs this can still migrate.
  if not pg_has_role('dispatcher_owner', 'member') then
    execute format('grant dispatcher_owner to %I', current_user);
  end if;
end
$$;

-- The owner may create schemas, because a migration may need one.
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
    select case c.relkind when 'v' then 'view' when 'S' then 'sequence' when 'c' then 'type'
        else 'table' end as kind,
      format('%I.%I', n.nspname, c.relname) as name
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('dispatcher', 'audit', 'facts') and c.relkind in ('r', 'p', 'v', 'S', 'c')
      and c.relowner <> 'dispatcher_owner'::regrole
      -- the sequence of an identity column has the owner of its table
      and not exists (select from pg_depend d
        where d.classid = 'pg_class'::regclass and d.objid = c.oid
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

-- Earlier grants are revoked first, so that none is left that this release does not make.
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

-- dispatcher_app may read everything and insert rows. It may update and delete only what statements
-- of package ledger update and delete, column by column. So ids, hashes of numbers, times of
-- receipt, routing versions and authors cannot be changed.
--
-- Where the log of hashes says who did what and when, the database fills in id, time, login and
-- evidence: a row without evidence, or from a time that is sealed, would not be in the log.
grant usage on schema dispatcher, audit, facts to dispatcher_app;
grant select on all tables in schema dispatcher to dispatcher_app;
grant select on all tables in schema audit to dispatcher_app;
grant select on all tables in schema facts to dispatcher_app;
grant usage on sequence dispatcher.message_numbers to dispatcher_app;
grant execute on function dispatcher.make_days, dispatcher.index_ids, dispatcher.summarise,
  dispatcher.drop_day, dispatcher.forget_day, dispatcher.release_dead, dispatcher.drop_references,
  dispatcher.drop_early_receipts, dispatcher.drop_denied_receipts,
  dispatcher.move_receipts, dispatcher.store_open_claims to dispatcher_app;

-- Messages and attempts: progress and outcome can be updated, and so can the plan, because a
-- waiting message is planned again. No row can be deleted: drop_day drops whole days.
grant insert, update (attempts, rounds, possible_duplicate, state, reason, next_at, finished_at,
  tried, seen, waiting_since, waits_for, waits, pinned, same_key_until, same_key, same_key_account,
  parts_cut, parts_left, route, routing_version, draw, draw_size, draw_key_id, first_choice,
  segments, alphabet)
  on dispatcher.messages to dispatcher_app;
grant insert, update (price_micros, segments, settled_at, held_until, receipts_within, answers,
  receipts_owed, denied_parts, outcome, provider_reference, provider_code, cut_short, unfit, freed,
  proved, receipt_at, delivered_at, contradicted_at, receipt_state, receipt_cause, receipt_code)
  on dispatcher.attempts to dispatcher_app;
grant insert, delete on dispatcher.pending_cancellations to dispatcher_app;
-- Numbers and texts can be deleted and not changed.
grant insert, delete, truncate on dispatcher.payloads to dispatcher_app;
grant insert, truncate on dispatcher.ids_0, dispatcher.ids_1 to dispatcher_app;
grant update on dispatcher.id_turns to dispatcher_app;
grant update (payloads, dropping, kept, living, looked_at) on dispatcher.days to dispatcher_app;
grant insert, update, delete on dispatcher.due, dispatcher.held to dispatcher_app;

-- Counters. No figure of a past window can be changed, and limit_history_kept refuses to delete
-- what is over and not old enough. To lock a row takes the right to update one of its columns, and
-- for limit_history that is pace, which no view shows.
grant insert, delete, update (position, configured_max, active_max, active, last_assigned,
  removed_at, ease_rate, ease_since, ease_until, freed) on dispatcher.channels to dispatcher_app;
grant insert, update (slots) on dispatcher.freed_slots to dispatcher_app;
grant insert, delete, update (configured_max, max, window_start, granted, reserved, next_at, pace,
  taken) on dispatcher.limits to dispatcher_app;
grant insert, delete, update (pace) on dispatcher.limit_history to dispatcher_app;
grant insert (channel, scope, window_seconds, unit, version, author, reason, was_start, was_granted,
  window_start, granted, set_aside, via) on dispatcher.limit_restarts to dispatcher_app;
grant insert (channel, scope, currency, micros, before, granted, author, reason, key, via)
  on dispatcher.top_ups to dispatcher_app;
grant insert, update, delete on dispatcher.cursors to dispatcher_app;

-- Routing. Of a version only waking can be changed.
grant insert (version, author, reason, created_at, document, routes, effects, base, waking, via),
  update (waking) on dispatcher.routing_versions to dispatcher_app;
grant insert, update (step, next_at, state, held, changed_by, version, changed_at)
  on dispatcher.ramps to dispatcher_app;
grant insert (ramp, author, move, step, version, reason, via) on dispatcher.ramp_moves
  to dispatcher_app;

-- Figures of closed days: corrections are further rows.
grant insert on dispatcher.closings, dispatcher.choice_figures, dispatcher.attempt_figures,
  dispatcher.carried_figures to dispatcher_app;

-- The log of hashes can only grow.
grant insert on dispatcher.seals to dispatcher_app;
grant execute on function dispatcher.forget_leaves to dispatcher_app;

-- Receipts and ambiguous submissions. Functions of the owner delete them, and receipts_legal,
-- receipts_taken_over and ambiguous_legal refuse to change what came and what is certain.
grant insert, update (message_seq, attempt, part, state, cause, code, received_at, due_at,
  look_at) on dispatcher.receipts to dispatcher_app;
grant insert, delete, update (due_at) on dispatcher.awaited to dispatcher_app;
grant insert, update (last, step, next_at, asked, closed_at, verdict, author, note, part_taken,
  via) on dispatcher.ambiguous to dispatcher_app;

-- Subscribers. Opt-outs can end, once, and cannot be deleted.
grant insert (tenant, recipient, source, channel, author, reason, heard_at, sent_at),
  update (heard_at, sent_at, until, ended_by, ended_channel, ended_author, ended_reason)
  on dispatcher.opt_outs to dispatcher_app;
grant insert, delete on dispatcher.inbound_parts, dispatcher.inbound_outbox to dispatcher_app;
grant insert, delete, update (until) on dispatcher.inbound_seen to dispatcher_app;
grant insert (author, reason, tenant, number_hmac, parts), update (messages, unended)
  on dispatcher.erasures to dispatcher_app;
grant execute on function dispatcher.clean_payloads to dispatcher_app;

-- Trips of guards and what guards count, and what operators did. guard_counts_kept and
-- guard_counts_added refuse to delete or lower what guards still compare with.
grant insert (per, subject, action, hour, seen, usual, days, times, at_least, version)
  on dispatcher.guard_trips to dispatcher_app;
grant insert (author, reason, action, subject, message_seq, new_id, via)
  on dispatcher.operator_actions to dispatcher_app;
grant insert, delete, update (messages) on dispatcher.guard_counts to dispatcher_app;

-- Answers to requests of the API, for requests that are repeated. api_requests_kept and
-- api_requests_answered keep an answer for a day.
grant insert, delete, update (status, header, body) on dispatcher.api_requests to dispatcher_app;

-- Processes and the outbox.
grant insert, delete, update (last_seen, beating_since, oldest_open_at, left_at, counts, state)
  on dispatcher.instances to dispatcher_app;
grant insert, delete, update (instance) on dispatcher.open_claims to dispatcher_app; -- to lock rows
grant insert, update (instance, host, version, taken_at, working_from, left_at, early_ends)
  on dispatcher.identities to dispatcher_app;
grant insert, delete on dispatcher.outbox to dispatcher_app;

-- Finance reads only views, and none of them has a number or a text. Auditors also see which draw
-- keys were used. The keys themselves are in a file and not in the database.
grant usage on schema audit, facts to dispatcher_finance;
grant select on all tables in schema audit to dispatcher_finance;
grant select on all tables in schema facts to dispatcher_finance;
revoke select on audit.draw_keys from dispatcher_finance;
grant select on audit.draw_keys to dispatcher_auditor;

-- Results of reconcile are inserted through views and cannot be changed. The author cannot choose
-- id, at and login.
grant insert (channel, file_digest, from_at, to_at, revision, complete, author, reason, lines,
  matched, ours_only, theirs_only, differences, ambiguous, resolved)
  on audit.reconciliations to dispatcher_app, dispatcher_finance;
grant insert on audit.reconciliation_totals, audit.reconciliation_differences
  to dispatcher_app, dispatcher_finance;

-- Partitions get the grants of their tables, because statements name them directly.
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
