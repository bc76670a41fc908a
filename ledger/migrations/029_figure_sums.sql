-- Sums of the figures of closed days, so that the report of a year reads few rows. The figures tell
-- all dimensions apart; most reports need none of hour, tenant, calling code and sender, or one.
--
-- A view says what the sums are, and a table stores them. A trigger writes them with the closing of
-- the day, in its transaction, whichever release closes it. split says which dimension a row has;
-- the other three are null in it. Figures never change, so neither do their sums.
create view dispatcher.sums_of_choice_figures as
  select day, revision, split,
    case split when 'hour' then hour end as hour,
    case split when 'tenant' then tenant end as tenant,
    case split when 'country' then calling_code end as calling_code,
    case split when 'sender' then sender end as sender,
    routing_version, route, channel, cause, sum(messages)::bigint as messages,
    sum(rejected)::bigint as rejected, sum(failed)::bigint as failed,
    sum(unknown)::bigint as unknown, sum(open)::bigint as open, sum(segments)::bigint as segments
  from dispatcher.choice_figures
  cross join (values ('none'), ('hour'), ('tenant'), ('country'), ('sender')) s (split)
  group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11;

create view dispatcher.sums_of_attempt_figures as
  select day, revision, split,
    case split when 'hour' then hour end as hour,
    case split when 'tenant' then tenant end as tenant,
    case split when 'country' then calling_code end as calling_code,
    case split when 'sender' then sender end as sender,
    routing_version, route, channel, reason, currency, sum(attempts)::bigint as attempts,
    sum(submitted)::bigint as submitted, sum(accepted)::bigint as accepted,
    sum(rejected)::bigint as rejected, sum(refused)::bigint as refused,
    sum(throttled)::bigint as throttled, sum(unknown)::bigint as unknown,
    sum(unsent)::bigint as unsent, sum(pending)::bigint as pending,
    sum(delivered)::bigint as delivered, sum(undelivered)::bigint as undelivered,
    sum(no_receipt)::bigint as no_receipt, sum(segments)::bigint as segments,
    sum(cost_micros)::bigint as cost_micros, sum(unknown_segments)::bigint as unknown_segments,
    sum(unknown_micros)::bigint as unknown_micros,
    sum(delivered_segments)::bigint as delivered_segments,
    sum(delivered_micros)::bigint as delivered_micros
  from dispatcher.attempt_figures
  cross join (values ('none'), ('hour'), ('tenant'), ('country'), ('sender')) s (split)
  group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;

create view dispatcher.sums_of_carried_figures as
  select day, revision, split,
    case split when 'hour' then hour end as hour,
    case split when 'tenant' then tenant end as tenant,
    case split when 'country' then calling_code end as calling_code,
    case split when 'sender' then sender end as sender,
    routing_version, route, first_choice, channel, cause, currency,
    sum(messages)::bigint as messages, sum(segments)::bigint as segments,
    sum(cost_micros)::bigint as cost_micros, sum(text_segments)::bigint as text_segments
  from dispatcher.carried_figures
  cross join (values ('none'), ('hour'), ('tenant'), ('country'), ('sender')) s (split)
  group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13;

-- The tables begin with the sums of the days that are closed.
create table dispatcher.choice_sums as
  select * from dispatcher.sums_of_choice_figures order by day, split;
create table dispatcher.attempt_sums as
  select * from dispatcher.sums_of_attempt_figures order by day, split;
create table dispatcher.carried_sums as
  select * from dispatcher.sums_of_carried_figures order by day, split;
create index choice_sums_day on dispatcher.choice_sums (day, split);
create index attempt_sums_day on dispatcher.attempt_sums (day, split);
create index carried_sums_day on dispatcher.carried_sums (day, split);

-- Groups are hashed: the planner expects many more than there are, and would sort.
create function dispatcher.store_sums() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_sort = off as $$
begin
  insert into dispatcher.choice_sums select * from dispatcher.sums_of_choice_figures
    where day = new.day and revision = new.revision order by split;
  insert into dispatcher.attempt_sums select * from dispatcher.sums_of_attempt_figures
    where day = new.day and revision = new.revision order by split;
  insert into dispatcher.carried_sums select * from dispatcher.sums_of_carried_figures
    where day = new.day and revision = new.revision order by split;
  return null;
end
$$;

create trigger sums after insert on dispatcher.closings
  for each row execute function dispatcher.store_sums();

create view audit.choice_sums as
  select day, revision, split, hour, tenant, calling_code, sender, routing_version, route, channel,
    cause, messages, rejected, failed, unknown, open, segments
  from dispatcher.choice_sums;
create view audit.attempt_sums as
  select day, revision, split, hour, tenant, calling_code, sender, routing_version, route, channel,
    reason, currency, attempts, submitted, accepted, rejected, refused, throttled, unknown, unsent,
    pending, delivered, undelivered, no_receipt, segments, cost_micros, unknown_segments,
    unknown_micros, delivered_segments, delivered_micros
  from dispatcher.attempt_sums;
create view audit.carried_sums as
  select day, revision, split, hour, tenant, calling_code, sender, routing_version, route,
    first_choice, channel, cause, currency, messages, segments, cost_micros, text_segments
  from dispatcher.carried_sums;

-- Stored sums that are not those of the figures: somebody changed either. The figures are in the log
-- of hashes, so the sums need no hashes of their own.
create view facts.wrong_sums as
  select distinct k.day, k.revision, w.sums, w.split
  from (
    select day, revision from dispatcher.closings
    union select day, revision from dispatcher.choice_figures
    union select day, revision from dispatcher.attempt_figures
    union select day, revision from dispatcher.carried_figures
    union select day, revision from dispatcher.choice_sums
    union select day, revision from dispatcher.attempt_sums
    union select day, revision from dispatcher.carried_sums) k
  cross join lateral (
    select 'choice_sums' as sums, split from (
      (select * from dispatcher.sums_of_choice_figures f
        where f.day = k.day and f.revision = k.revision
      except all select * from dispatcher.choice_sums s
        where s.day = k.day and s.revision = k.revision)
      union all
      (select * from dispatcher.choice_sums s where s.day = k.day and s.revision = k.revision
      except all select * from dispatcher.sums_of_choice_figures f
        where f.day = k.day and f.revision = k.revision)) d
    union all
    select 'attempt_sums', split from (
      (select * from dispatcher.sums_of_attempt_figures f
        where f.day = k.day and f.revision = k.revision
      except all select * from dispatcher.attempt_sums s
        where s.day = k.day and s.revision = k.revision)
      union all
      (select * from dispatcher.attempt_sums s where s.day = k.day and s.revision = k.revision
      except all select * from dispatcher.sums_of_attempt_figures f
        where f.day = k.day and f.revision = k.revision)) d
    union all
    select 'carried_sums', split from (
      (select * from dispatcher.sums_of_carried_figures f
        where f.day = k.day and f.revision = k.revision
      except all select * from dispatcher.carried_sums s
        where s.day = k.day and s.revision = k.revision)
      union all
      (select * from dispatcher.carried_sums s where s.day = k.day and s.revision = k.revision
      except all select * from dispatcher.sums_of_carried_figures f
        where f.day = k.day and f.revision = k.revision)) d) w;
