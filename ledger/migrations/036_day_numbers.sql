-- Numbers that rise through each day.
--
-- The number of a message is that of its day and a counter of 36 bits. The counter was a sequence
-- that began again after 68 billion messages, in the middle of a day. Messages of that day that came
-- later had lower numbers than those before, and who searches a day by time did not find them:
-- seals, the audit, guards. Now the sequence goes on, and each day counts from where the sequence
-- was when the day was made.

alter sequence dispatcher.message_numbers no maxvalue no cycle;

alter table dispatcher.days add column counts_from bigint not null default 0;
comment on column dispatcher.days.counts_from is
  'the value of message_numbers from which the messages of the day are counted';

-- make_day creates the partitions of a day, unless they exist. It creates tables and attaches them,
-- because CREATE TABLE ... PARTITION OF would wait for all readers of the parent.
--
-- An attempt is updated twice, by its settlement and by its receipt. No index has a column that
-- they change, so with room on the page both updates are heap-only. Most messages are never
-- updated, so their pages are filled.
--
-- While the sequence is low, days count from 0, as a process of the build before does. It gives no
-- number a second time, then.
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
  insert into dispatcher.days (day, counts_from)
  select day, case when n.last_value >= 1::bigint << 35 then n.last_value else 0 end
  from dispatcher.message_numbers n;
end
$$;
