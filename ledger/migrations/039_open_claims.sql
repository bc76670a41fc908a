-- The first attempt of a message is stored when it has an outcome.
--
-- A claim stored a row for each attempt, and the settlement updated it. Now a claim stores its first
-- attempts in one row of open_claims, and the settlement inserts each of them complete. Of all
-- attempts without outcome, only first ones are in open_claims. They are the only attempts of their
-- messages.
--
-- What needs a row for an attempt without outcome inserts it: a receipt that names the attempt, the
-- recovery of a dead instance, and any settlement but the plain one. From then on the row counts,
-- and what open_claims says of the attempt does not.

-- One row per claim, until all its attempts have a row. An array of one element stands for a column
-- of that value, a null one for a column of nulls.
create table dispatcher.open_claims (
  first_seq  bigint primary key, -- the first of seqs
  instance   bigint not null,
  claimed_at timestamptz not null,
  seqs       bigint[] not null,
  channels   text[] not null,
  reasons    text[] not null,
  segments   smallint[] not null,
  prices     bigint[] not null,
  currencies text[] not null,
  rankings   text[],       -- empty for none
  leaves_at  timestamptz[],
  constraint open_claims_first_seq check (first_seq = seqs[1]),
  constraint open_claims_prices check (0 <= all (prices)),
  constraint open_claims_segments check (0 <= all (segments)),
  constraint open_claims_reasons check (reasons <@ array['first_choice', 'fallback', 'retry',
    'resend', 'no_receipt'])
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0,
        toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_scale_factor = 0,
        toast.autovacuum_vacuum_cost_delay = 0);

do $$
begin
  alter table dispatcher.open_claims alter column seqs set compression lz4,
    alter column channels set compression lz4, alter column leaves_at set compression lz4;
exception when feature_not_supported then null; -- PostgreSQL was built without lz4
end
$$;

-- The attempts of open_claims. Some may have a row already.
create view dispatcher.claimed_attempts as
  select c.first_seq, u.seq as message_seq, c.instance, c.claimed_at, u.leaves_at,
    coalesce(u.price, c.prices[1]) as price_micros, coalesce(u.segments, c.segments[1]) as segments,
    coalesce(u.channel, c.channels[1]) as channel, coalesce(u.reason, c.reasons[1]) as reason,
    coalesce(u.currency, c.currencies[1]) as currency, nullif(u.ranking, '')::jsonb as ranking
  from dispatcher.open_claims c
  cross join lateral unnest(c.seqs, c.leaves_at, c.prices, c.segments, c.channels, c.reasons,
    c.currencies, c.rankings)
    as u(seq, leaves_at, price, segments, channel, reason, currency, ranking);

-- Those that have no row. This looks their keys up in all days, which takes some milliseconds.
create view dispatcher.open_attempts as
  select message_seq, instance, claimed_at, leaves_at, price_micros, segments, channel, reason,
    currency, ranking
  from dispatcher.claimed_attempts c
  where not exists (select from dispatcher.attempts a
    where a.message_seq = c.message_seq and a.attempt = 1 offset 0);

-- All attempts. Statements that read many days join attempts and open_attempts apart: PostgreSQL
-- joins tables of days day by day, and this view not.
create view dispatcher.all_attempts as
  select message_seq, instance, claimed_at, ticket_at, leaves_at, price_micros, attempt, segments,
    channel, reason, currency, ranking, settled_at, held_until, receipts_within, answers,
    receipts_owed, denied_parts, outcome, provider_reference, provider_code, cut_short, unfit,
    freed, proved, receipt_at, delivered_at, contradicted_at, receipt_state, receipt_cause,
    receipt_code
  from dispatcher.attempts
  union all
  select message_seq, instance, claimed_at, null::timestamptz, leaves_at, price_micros,
    1::smallint, segments, channel, reason, currency, ranking, null::timestamptz,
    null::timestamptz, null::interval, 0::smallint, null::smallint, null::smallint, null, null,
    null, null::boolean, null::boolean, false, null::boolean, null::timestamptz, null::timestamptz,
    null::timestamptz, null, null, null
  from dispatcher.open_attempts;

create or replace view audit.attempts as
  select m.id as message_id, a.attempt, a.channel, a.reason, a.outcome, a.provider_reference,
    a.provider_code, a.segments, a.price_micros, a.currency, a.claimed_at, a.settled_at,
    a.delivered_at,
    date_trunc('minute', coalesce(a.ticket_at, a.claimed_at)) as ticket_bucket,
    coalesce(a.ticket_at, a.claimed_at) as ticket_accepted_at,
    a.claimed_at as ticket_last_check_in, coalesce(a.leaves_at, a.claimed_at) as counted_at,
    a.receipt_state, a.receipt_cause, a.receipt_code, a.receipt_at,
    a.unfit is true and a.outcome in ('refused', 'unknown') as unfit, a.contradicted_at, a.ranking,
    a.message_seq as seq
  from dispatcher.all_attempts a join dispatcher.messages m on m.seq = a.message_seq;

create or replace view facts.attempts as
  select message_seq, attempt, channel, reason, segments, price_micros, currency, ranking, outcome,
    unfit, provider_code, provider_reference, claimed_at, settled_at, delivered_at, instance,
    answers, ticket_at, receipt_state, receipt_cause, receipt_code, receipt_at, contradicted_at,
    leaves_at
  from dispatcher.all_attempts;

-- The two parts of facts.attempts.
create view facts.stored_attempts as
  select message_seq, attempt, channel, reason, segments, price_micros, currency, ranking, outcome,
    unfit, provider_code, provider_reference, claimed_at, settled_at, delivered_at, instance,
    answers, ticket_at, receipt_state, receipt_cause, receipt_code, receipt_at, contradicted_at,
    leaves_at
  from dispatcher.attempts;

create view facts.open_attempts as
  select message_seq, channel, reason, segments, price_micros, currency, ranking, claimed_at,
    instance, leaves_at
  from dispatcher.open_attempts;

-- store_open_claims gives the attempts of claims a row, deletes the claims, and returns their
-- first_seq; null stands for all claims. It leaves out those that a settlement deletes just now.
create function dispatcher.store_open_claims(claims bigint[]) returns setof bigint
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  with picked as materialized (
    select c.first_seq from dispatcher.open_claims c
    where claims is null or c.first_seq = any(claims)
    order by c.first_seq for update skip locked
  ), stored as (
    insert into dispatcher.attempts (message_seq, attempt, leaves_at, price_micros, segments,
      channel, reason, currency, ranking, instance, claimed_at)
    select o.message_seq, 1, o.leaves_at, o.price_micros, o.segments, o.channel, o.reason,
      o.currency, o.ranking, o.instance, o.claimed_at
    from dispatcher.claimed_attempts o join picked using (first_seq)
    join dispatcher.days d on d.day = dispatcher.day_of(o.message_seq) and not d.dropping
    order by o.message_seq
    on conflict (message_seq, attempt) do nothing
  )
  delete from dispatcher.open_claims c using picked p where c.first_seq = p.first_seq
  returning c.first_seq
$$;

-- named_attempts finds the attempts that receipts name by our key, if they are on the channel that
-- the receipt came from, and the reference in dispatcher.receipts for a receipt without one: the
-- attempt's own if it has exactly one, else ours. nr is the position in the arrays.
--
-- When some are not there, it first gives those in open_claims a row. Others may have been settled
-- just now.
--
-- A custom plan has the numbers as constants, so that PostgreSQL reads only their partitions.
create or replace function dispatcher.named_attempts(
  seqs bigint[], attempts smallint[], channels text[])
returns table (nr bigint, reference text)
language plpgsql volatile
set plan_cache_mode = force_custom_plan
as $$
begin
  if exists (select from unnest(seqs, attempts) as g(seq, attempt) where not exists (
    select from dispatcher.attempts a where a.message_seq = g.seq and a.attempt = g.attempt
      and a.message_seq = any(seqs) offset 0))
  then
    insert into dispatcher.attempts (message_seq, attempt, leaves_at, price_micros, segments,
      channel, reason, currency, ranking, instance, claimed_at)
    select o.message_seq, 1, o.leaves_at, o.price_micros, o.segments, o.channel, o.reason,
      o.currency, o.ranking, o.instance, o.claimed_at
    from dispatcher.claimed_attempts o
    join dispatcher.days d on d.day = dispatcher.day_of(o.message_seq) and not d.dropping
    where o.message_seq = any(seqs)
    order by o.message_seq
    on conflict (message_seq, attempt) do nothing;
  end if;
  return query
    select g.nr, (
        select case when count(distinct n) = 1 and coalesce(a.receipts_owed, 1) = 1 then min(n)
          else ' ' || a.message_seq || '.' || a.attempt end
        from unnest(string_to_array(a.provider_reference, ' ')) as n where n <> '')
    from unnest(seqs, attempts, channels) with ordinality as g(seq, attempt, channel, nr)
    join dispatcher.attempts a on a.message_seq = g.seq and a.attempt = g.attempt
      and a.channel = g.channel
    where a.message_seq = any(seqs);
end
$$;

-- Instances of the build before do not know open_claims. While one is alive, the others store a row
-- for each attempt, and each of its heartbeats stores what they left in open_claims before they
-- knew. So it can recover and count all attempts.
alter table dispatcher.instances add reads_open_claims boolean not null default false;

create function dispatcher.store_for_old_instance() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform dispatcher.store_open_claims(null);
  return new;
end
$$;

create trigger instances_read before insert on dispatcher.instances
  for each row when (not new.reads_open_claims)
  execute function dispatcher.store_for_old_instance();

-- An instance with an attempt without outcome keeps its row, so that the attempt is recovered. Both
-- tables are read as of one moment, in which store_open_claims may have moved attempts.
create function dispatcher.keep_instance() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from dispatcher.open_claims c where c.instance = old.id
    union all
    select from dispatcher.attempts a where a.instance = old.id and a.outcome is null
      and a.claimed_at >= least(old.oldest_open_at, old.last_seen) - interval '1 minute')
  then
    return null;
  end if;
  return old;
end
$$;

create trigger instances_kept before delete on dispatcher.instances
  for each row execute function dispatcher.keep_instance();

revoke execute on function dispatcher.store_open_claims, dispatcher.store_for_old_instance,
  dispatcher.keep_instance from public;

-- make_day creates the partitions of a day, unless they exist. It creates tables and attaches them,
-- because CREATE TABLE ... PARTITION OF would wait for all readers of the parent.
--
-- Most attempts are updated once, by their receipt. No index has a column that it changes, so with
-- room on the page the update is heap-only. Most messages are never updated, so their pages are
-- filled.
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
    (like dispatcher.attempts including defaults including constraints) with (fillfactor = 42,
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

do $$
declare
  day integer;
begin
  for day in select d.day from dispatcher.days d
    where d.day >= dispatcher.day_at(clock_timestamp()) and not d.dropping
  loop
    execute format('alter table dispatcher.%I set (fillfactor = 42)',
      'attempts_' || to_char(date '1970-01-01' + day, 'YYYYMMDD'));
  end loop;
end
$$;

-- Instances of this release can run before the roles are granted again.
do $$
begin
  if has_schema_privilege((select oid from pg_roles where rolname = 'dispatcher_app'),
    'dispatcher', 'usage') then
    grant select, insert, update (instance), delete on dispatcher.open_claims to dispatcher_app;
    grant select on dispatcher.claimed_attempts, dispatcher.open_attempts, dispatcher.all_attempts,
      facts.stored_attempts, facts.open_attempts to dispatcher_app;
    grant execute on function dispatcher.store_open_claims to dispatcher_app;
  end if;
  if has_schema_privilege((select oid from pg_roles where rolname = 'dispatcher_finance'), 'facts',
    'usage') then
    grant select on facts.stored_attempts, facts.open_attempts to dispatcher_finance;
  end if;
end
$$;
