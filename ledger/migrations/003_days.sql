-- Partitions of days, counted from 1970-01-01 in UTC.

create table dispatcher.days (
  day         integer primary key,
  payloads    boolean not null default true,  -- its payloads have not been dropped
  ids_indexed boolean not null default false, -- its ids are in past_ids
  dropping    boolean not null default false, -- being dropped; nothing refers to it any more
  kept        bigint not null default 0, -- payloads that were kept, as their messages had not ended
  living      bigint not null default 0, -- messages that had not ended at looked_at, so it was kept
  looked_at   timestamptz
);

-- The day of a message, and the smallest number of a day.
create function dispatcher.day_of(seq bigint) returns integer
language sql immutable strict parallel safe return (seq >> 36)::integer;
create function dispatcher.first_of(day integer) returns bigint
language sql immutable strict parallel safe return day::bigint << 36;
create function dispatcher.day_at(at timestamptz) returns integer
language sql immutable strict parallel safe return floor(extract(epoch from at) / 86400)::integer;

-- The ids of past days, in ascending order, to find a message by its id. They are copied here when
-- ids_0 and ids_1 may forget them, and never change. So a small block range index finds them, and
-- building it blocks no write to messages.
create table dispatcher.past_ids (
  id  text collate "C" not null,
  seq bigint not null
) partition by range (seq);

-- The age before which drop_day drops nothing, whatever the dispatcher's login asks for.
create table dispatcher.least_kept (
  facts interval not null default '1 day' check (facts >= interval '1 day')
);
create unique index least_kept_one on dispatcher.least_kept ((true));
insert into dispatcher.least_kept default values;

-- The dispatcher's login owns nothing (roles/roles.sql). So the functions that create, index and
-- drop partitions are "security definer": they run with the rights of the owner. Each has a fixed
-- search_path, names every object with its schema, and does only what it says for any arguments.
-- Nobody but the owner may call them, unless it is granted. None is called for each message.

-- copy_grants gives a table the grants of another one, those of columns too. A partition needs its
-- own because statements name it directly.
create function dispatcher.copy_grants(source regclass, target regclass) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  one record;
begin
  for one in
    select g.privilege_type as privilege, '' as columns, g.grantee
    from pg_class c, aclexplode(c.relacl) g where c.oid = source and g.grantee <> c.relowner
    union all
    select g.privilege_type, format('(%I)', a.attname), g.grantee
    from pg_attribute a, aclexplode(a.attacl) g where a.attrelid = source and not a.attisdropped
  loop
    execute format('grant %s %s on %s to %s', one.privilege, one.columns, target,
      case when one.grantee = 0 then 'public' else one.grantee::regrole::text end);
  end loop;
end
$$;

-- make_day creates the partitions of a day, unless they exist. It creates tables and attaches them,
-- because CREATE TABLE ... PARTITION OF would wait for all readers of the parent.
--
-- An attempt is updated twice, by its settlement and by its receipt. The fill factor leaves room
-- for both versions on the page, and no index has a column that they change, so both updates are
-- heap-only. At 45 a fifth of them are not, which takes more disk than the room does. Most messages
-- are never updated, so their pages are filled.
create function dispatcher.make_day(day integer) returns void
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
    (like dispatcher.attempts including defaults including constraints) with (fillfactor = 35,
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

-- make_days creates those of today and of the next days, a week at most.
create function dispatcher.make_days(ahead integer) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
begin atomic
  select dispatcher.make_day(dispatcher.day_at(clock_timestamp()) + n)
  from generate_series(0, least(ahead, 7)) n;
end;

-- index_ids copies the ids of a past day to past_ids, unless it has done so. No message is added to
-- a past day. The rows are in order, so a block range index finds an id in a few pages. It is not
-- used without statistics.
create function dispatcher.index_ids(day integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  suffix text := to_char(date '1970-01-01' + day, 'YYYYMMDD');
begin
  perform from dispatcher.days d where d.day = index_ids.day and not d.ids_indexed
    and not d.dropping and d.day < dispatcher.day_at(clock_timestamp()) for update;
  if not found then
    return;
  end if;
  execute format('create table dispatcher.past_ids_%s (like dispatcher.past_ids)', suffix);
  execute format('insert into dispatcher.past_ids_%s
    select id, seq from dispatcher.messages_%1$s order by id', suffix);
  execute format('create index on dispatcher.past_ids_%s using brin (id)
    with (pages_per_range = 16)', suffix);
  execute format('analyze dispatcher.past_ids_%s', suffix);
  perform dispatcher.copy_grants('dispatcher.past_ids',
    ('dispatcher.past_ids_' || suffix)::regclass);
  execute format('alter table dispatcher.past_ids attach partition dispatcher.past_ids_%s
    for values from (%s) to (%s)', suffix, dispatcher.first_of(day), dispatcher.first_of(day + 1));
  update dispatcher.days d set ids_indexed = true where d.day = index_ids.day;
end
$$;

-- summarise brings one partition of the index attempts_claimed_at up to date.
create function dispatcher.summarise(index oid) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform brin_summarize_new_values(i.inhrelid) from pg_inherits i
  where i.inhrelid = index and i.inhparent = 'dispatcher.attempts_claimed_at'::regclass;
end
$$;

-- drop_day drops one table of a day that is marked as dropping, if it exists. The caller sets a
-- timeout for its locks.
create function dispatcher.drop_day(kind text, day integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind not in ('messages', 'payloads', 'attempts', 'past_ids') then
    raise exception 'there is no table % of a day', kind using errcode = 'invalid_parameter_value';
  end if;
  if not exists (select from dispatcher.days d, dispatcher.least_kept l
      where d.day = drop_day.day and d.dropping
        and to_timestamp((d.day + 1)::bigint * 86400) <= clock_timestamp() - l.facts) then
    raise exception 'day % is not on its way out, or the owner of the ledger keeps it longer',
      date '1970-01-01' + day using errcode = 'insufficient_privilege';
  end if;
  execute format('drop table if exists dispatcher.%I',
    kind || '_' || to_char(date '1970-01-01' + day, 'YYYYMMDD'));
end
$$;

-- forget_day removes a day from dispatcher.days when its messages have been dropped.
create function dispatcher.forget_day(day integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regclass('dispatcher.messages_' || to_char(date '1970-01-01' + day, 'YYYYMMDD')) is null
  then
    delete from dispatcher.days d where d.day = forget_day.day and d.dropping;
  end if;
end
$$;

revoke execute on function dispatcher.copy_grants, dispatcher.make_day, dispatcher.make_days,
  dispatcher.index_ids, dispatcher.summarise, dispatcher.drop_day, dispatcher.forget_day
  from public;

select dispatcher.make_days(2);
