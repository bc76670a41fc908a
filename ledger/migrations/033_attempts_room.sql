-- Room for the updates of attempts.
--
-- One transaction may store the receipts of all attempts of a page. The page then needs room for
-- two versions of each: for 25 attempts with references of some twenty characters, which is a fill
-- factor of 31. With 35, up to a tenth of the updates went to another page and wrote new entries of
-- indexes. That took more WAL, and more disk than the room does.

-- make_day creates the partitions of a day, unless they exist. It creates tables and attaches them,
-- because CREATE TABLE ... PARTITION OF would wait for all readers of the parent.
--
-- An attempt is updated twice, by its settlement and by its receipt. No index has a column that
-- they change, so with room on the page both updates are heap-only. Most messages are never
-- updated, so their pages are filled.
create or replace function dispatcher.make_day(day integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  suffix text := to_char(date '1970-01-01' + day, 'YYYYMMDD');
  bounds text := format('for values from (%s) to (%s)', dispatcher.first_of(day),
    dispatcher.first_of(day + 1));
begin
  perform pg_advisory_xact_lock(hashtext('dispatcher.make_day'));
  if exists (select from dispatcher.days d where d.day = make_day.day) then
    return;
  end if;
  execute format('create table dispatcher.messages_%s
    (like dispatcher.messages including defaults including constraints) with (fillfactor = 90,
      autovacuum_vacuum_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.1)', suffix);
  execute format('create table dispatcher.payloads_%s
    (like dispatcher.payloads including defaults including constraints)', suffix);
  execute format('create table dispatcher.attempts_%s
    (like dispatcher.attempts including defaults including constraints) with (fillfactor = 31,
      autovacuum_vacuum_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.1)', suffix);
  execute format('alter table dispatcher.messages attach partition dispatcher.messages_%s %s',
    suffix, bounds);
  execute format('alter table dispatcher.payloads attach partition dispatcher.payloads_%s %s',
    suffix, bounds);
  execute format('alter table dispatcher.attempts attach partition dispatcher.attempts_%s %s',
    suffix, bounds);
  perform
    dispatcher.copy_grants('dispatcher.messages', ('dispatcher.messages_' || suffix)::regclass),
    dispatcher.copy_grants('dispatcher.payloads', ('dispatcher.payloads_' || suffix)::regclass),
    dispatcher.copy_grants('dispatcher.attempts', ('dispatcher.attempts_' || suffix)::regclass);
  insert into dispatcher.days (day) values (day);
end
$$;

do $$
declare
  day integer;
begin
  for day in select d.day from dispatcher.days d
    where d.day >= dispatcher.day_at(clock_timestamp()) and not d.dropping
  loop
    execute format('alter table dispatcher.%I set (fillfactor = 31)',
      'attempts_' || to_char(date '1970-01-01' + day, 'YYYYMMDD'));
  end loop;
end
$$;
