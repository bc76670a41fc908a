-- Receipts of past days. A receipt is found by its reference, which is unique over all days, so the
-- table receipts has no partitions. When the receipts of a message have been at rest for two weeks,
-- they move to past_receipts, which has a partition for each day. So the index of references holds
-- what still changes, however long the ledger is kept, and a day is dropped with its receipts.

create table dispatcher.past_receipts (
  channel     text collate "C" not null,
  reference   text collate "C" not null,
  message_seq bigint not null,
  attempt     smallint not null,
  part        smallint,
  state       text not null,
  cause       text,
  code        text,
  received_at timestamptz
) partition by range (message_seq);
create index past_receipts_message_seq on dispatcher.past_receipts (message_seq);

-- Receipts of the days that exist now may have taken over rows of other messages, which only a look
-- into receipts shows. They stay there until their day is dropped.
alter table dispatcher.days add receipts_move boolean not null default true;
alter table dispatcher.days add receipts_looked_at timestamptz; -- by move_receipts, to the end
update dispatcher.days set receipts_move = false where exists (select from dispatcher.receipts);

create view dispatcher.all_receipts as
  select channel, reference, message_seq, attempt, part, state, cause, code, received_at
  from dispatcher.receipts
  union all
  select channel, reference, message_seq, attempt, part, state, cause, code, received_at
  from dispatcher.past_receipts;

-- move_receipts moves receipts of a day to past_receipts: it looks at the next 5000 after number
-- after. It returns the number of the last message that it looked at, null at the end, and how many
-- it moved. The day must have ended two weeks ago.
--
-- Those of a message move together, when nothing but a receipt can change it: every attempt has a
-- certain outcome, none is to follow, no receipt is awaited, and the last one came, or the message
-- ended, two weeks ago. A receipt that comes for it later changes nothing.
--
-- Rows that may move are locked, in the order of fallDue in package ledger, and then read again.
create function dispatcher.move_receipts(day integer, after bigint)
returns table (upto bigint, moved bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_variable
declare
  stay constant interval := '14 days';
  bound bigint := dispatcher.first_of(day + 1);
  suffixed text := 'past_receipts_' || to_char(date '1970-01-01' + day, 'YYYYMMDD');
  seqs bigint[];
begin
  perform from dispatcher.days d
  where d.day = move_receipts.day and d.receipts_move and not d.dropping
    and to_timestamp((d.day + 1)::bigint * 86400) <= clock_timestamp() - stay for update;
  if not found then
    raise exception 'receipts of day % do not move', date '1970-01-01' + day
      using errcode = 'insufficient_privilege';
  end if;
  if to_regclass('dispatcher.' || suffixed) is null then
    execute format('create table dispatcher.%I (like dispatcher.past_receipts)', suffixed);
    execute format('alter table dispatcher.past_receipts attach partition dispatcher.%I
      for values from (%s) to (%s)', suffixed, dispatcher.first_of(day), bound);
  end if;

  select max(s.message_seq), array_agg(distinct s.message_seq) filter (where s.due_at is null
    and coalesce(s.received_at < clock_timestamp() - stay, true))
  into upto, seqs from (
    select r.message_seq, r.due_at, r.received_at from dispatcher.receipts r
    where r.message_seq > greatest(after, dispatcher.first_of(day) - 1) and r.message_seq < bound
    order by r.message_seq limit 5000) s;
  if upto is null then
    update dispatcher.days d set receipts_looked_at = clock_timestamp()
    where d.day = move_receipts.day;
  end if;
  perform from dispatcher.receipts r where r.message_seq = any(seqs)
  order by strpos(r.reference, ' ') > 1, r.channel, r.reference for update;
  with gone as (
    delete from dispatcher.receipts r where r.message_seq = any(seqs) and r.message_seq in (
      select m.seq from dispatcher.messages m
      join dispatcher.receipts s on s.message_seq = m.seq
      where m.seq = any(seqs) and m.next_at is null and not exists (
        select from dispatcher.attempts a where a.message_seq = m.seq and a.message_seq = any(seqs)
          and coalesce(a.outcome, 'unknown') = 'unknown')
      group by m.seq, m.finished_at
      having bool_and(s.due_at is null)
        and greatest(max(s.received_at), m.finished_at) < clock_timestamp() - stay)
    returning *
  )
  insert into dispatcher.past_receipts (channel, reference, message_seq, attempt, part, state,
    cause, code, received_at)
  select g.channel, g.reference, g.message_seq, g.attempt, g.part, g.state, g.cause, g.code,
    g.received_at from gone g order by g.message_seq;
  get diagnostics moved = row_count;
  return next;
end
$$;

-- Messages whose receipts another message has taken over, because the provider used a reference
-- again. Rows of the days from before this migration are compared with receipts, where they stay.
create table dispatcher.reused_references (
  message_seq bigint not null,
  by_seq      bigint not null
);
create index reused_references_message_seq on dispatcher.reused_references (message_seq);

create function dispatcher.note_reuse() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into dispatcher.reused_references (message_seq, by_seq)
  values (old.message_seq, new.message_seq);
  return null;
end
$$;

create trigger receipts_reused after update of message_seq on dispatcher.receipts
  for each row when (old.message_seq <> new.message_seq)
  execute function dispatcher.note_reuse();

create or replace view facts.reused_references as
  select message_seq as seq, by_seq from dispatcher.reused_references
  union all
  select a.message_seq, r.message_seq
  from dispatcher.attempts a
  cross join lateral unnest(string_to_array(a.provider_reference, ' ')) u (reference)
  join dispatcher.receipts r on r.channel = a.channel and r.reference = u.reference
    and r.message_seq <> a.message_seq
  join dispatcher.days d on d.day = dispatcher.day_of(a.message_seq) and not d.receipts_move;

-- Views of receipts.
create or replace view audit.receipts as
  select m.id as message_id, r.attempt, r.part, r.channel,
    nullif(split_part(r.reference, ' ', 1), '') as reference, r.state, r.cause, r.code,
    r.received_at, m.seq
  from dispatcher.all_receipts r left join dispatcher.messages m on m.seq = r.message_seq;

create or replace view facts.receipts as
  select message_seq, attempt, part, channel, reference, received_at, state
  from dispatcher.all_receipts;

create or replace view dispatcher.evidence_texts as
  select m.seq, m.id, m.received_at, case when o.open then 'open' else m.state end as state,
    o.open or coalesce(a.open, false) as open,
    case when m.sender is null
      then json_build_array(m.id, m.lane, m.tenant, m.topic, m.kafka_partition, m.kafka_offset,
        dispatcher.micros(m.received_at), m.calling_code, m.number_hmac, m.envelope_hmac)
      else json_build_array(m.id, m.lane, m.tenant, m.topic, m.kafka_partition, m.kafka_offset,
        dispatcher.micros(m.received_at), m.calling_code, m.number_hmac, m.envelope_hmac, m.sender)
      end as intake,
    case when not o.open then json_build_array(m.route, m.routing_version, m.draw, m.draw_size,
      m.draw_key_id, m.first_choice, m.segments, m.alphabet) end as plan,
    case when not o.open then a.attempts end as attempts,
    case when not o.open then json_build_array(m.state, m.reason, m.possible_duplicate,
      dispatcher.micros(m.finished_at), a.receipts, d.ambiguous) end as later,
    greatest(m.finished_at, a.later_at, d.later_at, r.later_at) as later_at,
    d.ambiguous is not null as noted,
    case when o.open then null
      when r.receipts is null and m.detail is null
        then json_build_array(m.state, m.reason, m.possible_duplicate,
          dispatcher.micros(m.finished_at), a.receipts, d.ambiguous)
      else json_build_array(m.state, m.reason, m.possible_duplicate,
        dispatcher.micros(m.finished_at), a.receipts, d.ambiguous, r.receipts, m.detail)
      end as later_2
  from dispatcher.message_states m
  cross join lateral (select m.state = 'sending' or m.next_at is not null as open) o
  left join lateral (
    select bool_or(outcome is null or outcome = 'unknown') as open,
      json_agg(json_build_array(attempt, channel, reason, segments, price_micros, currency, ranking,
        dispatcher.micros(claimed_at), dispatcher.micros(ticket_at), dispatcher.micros(leaves_at),
        dispatcher.micros(settled_at), outcome, provider_reference, provider_code, unfit)
        order by attempt) as attempts,
      json_agg(json_build_array(receipt_state, receipt_cause, receipt_code,
        dispatcher.micros(receipt_at), dispatcher.micros(delivered_at),
        dispatcher.micros(contradicted_at), proved) order by attempt) as receipts,
      max(greatest(claimed_at, settled_at, receipt_at, delivered_at, contradicted_at)) as later_at
    from dispatcher.attempts where message_seq = m.seq and not o.open) a on true
  left join lateral (
    select json_agg(json_build_array(attempt, last, dispatcher.micros(opened_at),
        dispatcher.micros(closed_at), verdict, author, note) order by attempt, key) as ambiguous,
      max(greatest(opened_at, closed_at)) as later_at
    from dispatcher.ambiguous where message_seq = m.seq and not o.open) d on true
  left join lateral (
    select json_agg(json_build_array(attempt, part, channel,
        nullif(split_part(reference, ' ', 1), ''), state, cause, code,
        dispatcher.micros(received_at)) order by attempt, part, channel, reference) as receipts,
      max(received_at) as later_at
    from dispatcher.all_receipts where message_seq = m.seq and part is not null
      and received_at is not null and not o.open) r on true;

-- drop_day and drop_references as before, with the new tables.
create or replace function dispatcher.drop_day(kind text, day integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind not in ('messages', 'payloads', 'attempts', 'past_ids', 'past_receipts') then
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

create or replace function dispatcher.drop_references(kind text, day integer) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  gone bigint;
begin
  if kind not in ('receipts', 'ambiguous', 'reused_references') then
    raise exception 'there is no table % of references', kind
      using errcode = 'invalid_parameter_value';
  end if;
  if not exists (select from dispatcher.days d, dispatcher.least_kept l
      where d.day = drop_references.day and d.dropping
        and to_timestamp((d.day + 1)::bigint * 86400) <= clock_timestamp() - l.facts) then
    raise exception 'day % is not on its way out, or the owner of the ledger keeps it longer',
      date '1970-01-01' + day using errcode = 'insufficient_privilege';
  end if;
  execute format('delete from dispatcher.%I where ctid = any(array(
    select ctid from dispatcher.%1$I where message_seq >= $1 and message_seq < $2 limit 5000
    for update skip locked))', kind)
    using dispatcher.first_of(day), dispatcher.first_of(day + 1);
  get diagnostics gone = row_count;
  return gone;
end
$$;

revoke execute on function dispatcher.move_receipts, dispatcher.note_reuse from public;

-- Instances of this release can run before the roles are granted again.
do $$
begin
  if has_schema_privilege((select oid from pg_roles where rolname = 'dispatcher_app'),
    'dispatcher', 'usage') then
    grant select on dispatcher.past_receipts, dispatcher.all_receipts,
      dispatcher.reused_references to dispatcher_app;
    grant execute on function dispatcher.move_receipts to dispatcher_app;
  end if;
end
$$;
