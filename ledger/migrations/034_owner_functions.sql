-- Rights of functions, sums that migration 29 missed, and indexes for the log of hashes.

-- Functions of triggers run with the owner's rights, and whoever may call one may make it the
-- trigger of a temporary table: store_sums then stored the sums of a day once more. A trigger that
-- exists needs no right to call its function.
revoke execute on function dispatcher.store_sums, dispatcher.refuse_addition from public;

-- clean_payloads lets autovacuum remove the deleted payloads of a day from the pages at its next
-- visit, however few they are. Only the owner of a table may run VACUUM. The setting is also that of
-- the table's large values, and the partition keeps it.
create function dispatcher.clean_payloads(day integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  suffixed text := 'payloads_' || to_char(date '1970-01-01' + day, 'YYYYMMDD');
begin
  if exists (select from pg_class c where c.oid = to_regclass('dispatcher.' || suffixed)
    and c.reloptions @> '{autovacuum_vacuum_threshold=0}' is not true)
  then
    execute format('alter table dispatcher.%I set (autovacuum_vacuum_threshold = 0,
      autovacuum_vacuum_scale_factor = 0)', suffixed);
  end if;
end
$$;
revoke execute on function dispatcher.clean_payloads from public;

-- Instances of this release can run before the roles are granted again.
do $$
begin
  if has_schema_privilege((select oid from pg_roles where rolname = 'dispatcher_app'),
    'dispatcher', 'usage') then
    grant execute on function dispatcher.clean_payloads to dispatcher_app;
  end if;
end
$$;

-- Migration 29 added up the figures before its trigger existed: a closing that was committed between
-- the two has no sums.
do $$
declare
  c record;
begin
  for c in select day, revision from dispatcher.closings loop
    insert into dispatcher.choice_sums select * from dispatcher.sums_of_choice_figures f
      where f.day = c.day and f.revision = c.revision and not exists (
        select from dispatcher.choice_sums s where s.day = c.day and s.revision = c.revision)
      order by split;
    insert into dispatcher.attempt_sums select * from dispatcher.sums_of_attempt_figures f
      where f.day = c.day and f.revision = c.revision and not exists (
        select from dispatcher.attempt_sums s where s.day = c.day and s.revision = c.revision)
      order by split;
    insert into dispatcher.carried_sums select * from dispatcher.sums_of_carried_figures f
      where f.day = c.day and f.revision = c.revision and not exists (
        select from dispatcher.carried_sums s where s.day = c.day and s.revision = c.revision)
      order by split;
  end loop;
end
$$;

-- Seals look for new actions every minute, and explain looks for who cancelled a message.
create index operator_actions_at on dispatcher.operator_actions (at) where evidence = 1;
create index operator_actions_cancelled on dispatcher.operator_actions (subject, id)
  where action = 'cancel';
