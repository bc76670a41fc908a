-- ANALYZE of the tables of a day reads fewer rows.
--
-- By default it samples 30 000 rows of each table, and sorts each column. The tables of the current
-- day grow, so it comes again and again. It took 0.3 seconds of CPU, in which messages waited.
-- Statements of messages find rows by their keys, and reports add up whole days. For these a sample
-- of 3 000 rows is enough.

-- sample_less makes ANALYZE read 300 rows of the table for each of ten values, not of a hundred.
create function dispatcher.sample_less(sampled regclass) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  execute (
    select format('alter table %s %s', sampled,
      string_agg(format('alter column %I set statistics 10', a.attname), ', '))
    from pg_attribute a where a.attrelid = sampled and a.attnum > 0 and not a.attisdropped);
end
$$;
revoke execute on function dispatcher.sample_less from public;

-- Past days hardly change, and are not analysed again.
select pg_advisory_xact_lock(hashtext('dispatcher.make_day'));
select dispatcher.sample_less(format('dispatcher.%s_%s', whole,
  to_char(date '1970-01-01' + d.day, 'YYYYMMDD'))::regclass)
from dispatcher.days d, unnest('{messages,payloads,attempts}'::text[]) as whole
where d.day >= dispatcher.day_at(now());
select dispatcher.sample_less('dispatcher.ids_0'), dispatcher.sample_less('dispatcher.ids_1');

-- make_day creates the partitions of a day, unless they exist. It creates tables and attaches them,
-- because CREATE TABLE ... PARTITION OF would wait for all readers of the parent.
--
-- An attempt is updated twice, by its settlement and by its receipt. No index has a column that
-- they change, so with room on the page both updates are heap-only. Most messages are never
-- updated, so their pages are filled.
--
-- While the sequence is low, days count from 0, as a process of a build before migration 036 does.
-- It gives no number a second time, then.
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
  perform
    dispatcher.sample_less(('dispatcher.messages_' || suffix)::regclass),
    dispatcher.sample_less(('dispatcher.payloads_' || suffix)::regclass),
    dispatcher.sample_less(('dispatcher.attempts_' || suffix)::regclass);
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
  insert into dispatcher.days (day, counts_from)
  select day, case when n.last_value >= 1::bigint << 35 then n.last_value else 0 end
  from dispatcher.message_numbers n;
end
$$;
