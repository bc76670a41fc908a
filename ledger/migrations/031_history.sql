-- History is deleted only by functions of the owner, or where a trigger finds it old enough, and
-- what is recorded is not changed. The function of the triggers refuses every login but the
-- owner's, see 018_final_rows.sql. Their WHEN clauses are false for all that statements of package
-- ledger do.

create or replace function dispatcher.refuse_change() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not has_table_privilege(tg_relid, 'trigger') then
    raise exception 'a final row of % cannot be % (%)', tg_table_name,
      case tg_op when 'DELETE' then 'deleted' else 'changed' end, tg_name
      using errcode = 'insufficient_privilege';
  end if;
  return null;
end
$$;

alter function dispatcher.refuse_resettling() set search_path = pg_catalog, pg_temp;

-- legal_receipt says whether a row of receipts may be updated like this.
--
-- What came for a message stays: only a receipt of a higher rank replaces it. A row without a
-- message gets one and keeps its receipt. When a provider uses a reference again, the row begins
-- anew for the other message if its time for the first one is over. A row that a receipt with our
-- key made does so at any time, unless that receipt is final. When another attempt of the same
-- message has the reference, it gets the row with its receipt: a later attempt at any time, an
-- earlier one as another message would.
--
-- It is never null. As dispatcher.legal, it is inlined into the trigger's WHEN clause, so a legal
-- update calls no function.
create function dispatcher.legal_receipt(was dispatcher.receipts, becomes dispatcher.receipts)
returns boolean
language sql immutable parallel safe
return case
  when was.message_seq is not null and was.message_seq is distinct from becomes.message_seq
  then becomes.part is not null and becomes.state = 'expected' and becomes.code is null
    and (was.due_at is null or was.part is null and was.state in ('expected', 'pending'))
  else (was.attempt is null or coalesce(becomes.attempt >= was.attempt, false)
      or becomes.part is not null
        and (was.due_at is null or was.part is null and was.state in ('expected', 'pending')))
    and (was.part is null or becomes.part is not null)
    and (dispatcher.receipt_rank(becomes.state) > dispatcher.receipt_rank(was.state)
      or (was.state, was.cause, was.code, was.received_at)
        is not distinct from (becomes.state, becomes.cause, becomes.code, becomes.received_at))
end;

create trigger receipts_legal
  after update of message_seq, attempt, part, state, cause, code, received_at
  on dispatcher.receipts
  for each row when (not dispatcher.legal_receipt(old, new))
  execute function dispatcher.refuse_change();

-- Messages whose receipts another message has taken over, because the provider used a reference
-- again. The other one may have come earlier, if it was sent later.
create or replace view facts.reused_references as
  select a.message_seq as seq, r.message_seq as by_seq
  from dispatcher.attempts a
  cross join lateral unnest(string_to_array(a.provider_reference, ' ')) u (reference)
  join dispatcher.receipts r on r.channel = a.channel and r.reference = u.reference
    and r.message_seq <> a.message_seq;

-- A row passes to another message, or to an earlier attempt, only if that attempt is on its channel
-- and has the reference, or no answer yet: the settlement that stores the answer comes later in the
-- transaction.
create function dispatcher.refuse_takeover() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
begin
  if has_table_privilege(tg_relid, 'trigger') or exists (
    select from dispatcher.attempts a
    where a.message_seq = new.message_seq and a.attempt = new.attempt and a.channel = new.channel
      and (coalesce(a.outcome, 'unknown') = 'unknown'
        or new.reference = any(string_to_array(a.provider_reference, ' '))))
  then
    return null;
  end if;
  raise exception 'the reference belongs to attempt % of message % and cannot pass to % of %',
    old.attempt, old.message_seq, new.attempt, new.message_seq
    using errcode = 'insufficient_privilege';
end
$$;

create trigger receipts_taken_over after update of message_seq, attempt on dispatcher.receipts
  for each row when (old.message_seq <> new.message_seq or new.attempt < old.attempt)
  execute function dispatcher.refuse_takeover();

-- legal_ambiguity says whether a row of ambiguous may be updated like this. A certain verdict
-- stays. One that nobody was certain of, final or resent, may still be replaced; the note then
-- says what it was before.
create function dispatcher.legal_ambiguity(was dispatcher.ambiguous, becomes dispatcher.ambiguous)
returns boolean
language sql immutable parallel safe
return case
  when was.verdict is null then becomes.last >= was.last
  when was.verdict in ('final', 'resent')
  then was is not distinct from becomes or becomes.verdict is not null
    and becomes.closed_at <> was.closed_at
    and (was.last, was.step, was.asked, was.part_taken)
      = (becomes.last, becomes.step, becomes.asked, becomes.part_taken)
    and strpos(becomes.note, '(before: ' || was.verdict) > 0
    and strpos(becomes.note, was.author) > 0 and strpos(becomes.note, was.note) > 0
  else was is not distinct from becomes
end;

create trigger ambiguous_legal after update on dispatcher.ambiguous
  for each row when (not dispatcher.legal_ambiguity(old, new))
  execute function dispatcher.refuse_change();
drop trigger ambiguous_certain on dispatcher.ambiguous;

-- drop_references deletes receipts or ambiguities of the messages of a day, 5000 at most, and
-- returns how many. As for drop_day, the day must be marked as dropping and be older than the owner
-- keeps days.
create function dispatcher.drop_references(kind text, day integer) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  gone bigint;
begin
  if kind not in ('receipts', 'ambiguous') then
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

-- drop_early_receipts deletes receipts that have had no known message for longer than older, and a
-- day at least: 5000 at most. It returns how many.
create function dispatcher.drop_early_receipts(older interval) returns bigint
language sql security definer
set search_path = pg_catalog, pg_temp
begin atomic
  with gone as (
    delete from dispatcher.receipts where ctid = any(array(
      select ctid from dispatcher.receipts
      where early_since < now() - greatest(older, interval '1 day')
      order by early_since limit 5000 for update skip locked))
    returning 1
  )
  select count(*) from gone;
end;

-- drop_denied_receipts deletes rows of ids that answers named for parts which they denied, when
-- their time is over and no receipt says delivered. The arrays name the rows, see
-- receiptWrites.drop in package ledger.
--
-- A custom plan has the numbers as constants, so that PostgreSQL reads only their partitions.
create function dispatcher.drop_denied_receipts(seqs bigint[], channels text[], refs text[])
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
  gone bigint;
begin
  delete from dispatcher.receipts r
  using unnest(seqs, channels, refs) as n(seq, channel, reference), dispatcher.attempts a
  where r.channel = n.channel and r.reference = n.reference and r.message_seq = n.seq
    and r.part is null and r.state <> 'delivered' and r.due_at <= now()
    and a.message_seq = any(seqs) and a.message_seq = r.message_seq and a.attempt = r.attempt
    and a.outcome in ('refused', 'throttled', 'rejected');
  get diagnostics gone = row_count;
  return gone;
end
$$;

revoke execute on function dispatcher.drop_references, dispatcher.drop_early_receipts,
  dispatcher.drop_denied_receipts from public;

-- Instances of this release can run before the roles are granted again, so that those of the
-- release before keep the rights that they need until they are replaced.
do $$
begin
  if has_schema_privilege((select oid from pg_roles where rolname = 'dispatcher_app'),
    'dispatcher', 'usage') then
    grant execute on function dispatcher.drop_references, dispatcher.drop_early_receipts,
      dispatcher.drop_denied_receipts to dispatcher_app;
  end if;
end
$$;

-- window_kept says whether a window must stay in limit_history. While it runs, its limit may take
-- it back. When it is over it stays: one of a second for an hour, the minimum of
-- DISPATCHER_WINDOW_RETENTION, one of a minute for ten hours, others for 400 days. A day may have
-- 25 hours, as in facts.window_evidence. The minute is for a change of the routing that began
-- before the end.
create function dispatcher.window_kept(seconds integer, start timestamptz, at timestamptz)
returns boolean
language sql stable parallel safe
return at > start + interval '1 minute' + case seconds when 86400 then interval '25 hours'
    else make_interval(secs => seconds) end
  and at < start + case seconds when 1 then interval '1 hour' when 60 then interval '10 hours'
    else interval '9600 hours' end;

create trigger limit_history_kept after delete on dispatcher.limit_history
  for each row when (dispatcher.window_kept(old.window_seconds, old.window_start,
    clock_timestamp()))
  execute function dispatcher.refuse_change();

-- Guards compare with the 31 days before. What was counted is only added to.
create trigger guard_counts_kept after delete on dispatcher.guard_counts
  for each row when (old.hour > now() - interval '31 days')
  execute function dispatcher.refuse_change();
create trigger guard_counts_added after update on dispatcher.guard_counts
  for each row when (new.messages < old.messages)
  execute function dispatcher.refuse_change();

-- The answer to a request of the API is the one that a repetition gets for a day.
create trigger api_requests_kept after delete on dispatcher.api_requests
  for each row when (old.status is not null and old.at > now() - interval '24 hours')
  execute function dispatcher.refuse_change();
create trigger api_requests_answered after update on dispatcher.api_requests
  for each row when (old.status is not null and old is distinct from new)
  execute function dispatcher.refuse_change();

-- An opt-out ends once.
create trigger opt_outs_ended after update on dispatcher.opt_outs
  for each row when (old.until is not null)
  execute function dispatcher.refuse_change();

-- An erasure counts what it has erased.
create trigger erasures_counted after update on dispatcher.erasures
  for each row when (new.messages < old.messages or new.unended < old.unended)
  execute function dispatcher.refuse_change();
