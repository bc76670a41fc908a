-- An id may occur twice: on a dead record and on the message that it was replayed as, or again after
-- DISPATCHER_ID_RETENTION. seq is the number of a message and occurs once, so rows are joined by it.
create or replace view audit.messages as
  select id, lane, tenant, route, routing_version, draw, draw_size, draw_key_id, first_choice,
    state, segments, alphabet, received_at, finished_at, topic, kafka_partition, kafka_offset,
    possible_duplicate, calling_code, number_hmac, envelope_hmac, sender, seq
  from dispatcher.message_states;

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
  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq;

create or replace view audit.receipts as
  select m.id as message_id, r.attempt, r.part, r.channel,
    nullif(split_part(r.reference, ' ', 1), '') as reference, r.state, r.cause, r.code,
    r.received_at, m.seq
  from dispatcher.receipts r left join dispatcher.messages m on m.seq = r.message_seq;

-- Columns via: how an action came in.
create or replace view audit.ambiguous as
  select m.id as message_id, d.attempt, d.last as last_attempt, a.channel, d.step, d.opened_at,
    d.until, d.asked, d.closed_at, d.verdict, d.author,
    case when has_table_privilege('dispatcher.ambiguous'::regclass, 'select') then d.note
      else '' end as note,
    d.login, d.via, d.message_seq as seq
  from dispatcher.ambiguous d
  join dispatcher.messages m on m.seq = d.message_seq
  join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.attempt;

create or replace view audit.limit_restarts as
  select channel, scope, window_seconds, unit, restarted_at, version, author, reason, was_start,
    was_granted, window_start, granted, set_aside, login, via
  from dispatcher.limit_restarts;

create or replace view audit.top_ups as
  select id, at, login, author, channel, scope, currency, micros, before, granted, key, via
  from dispatcher.top_ups;

create or replace view audit.routing_versions as
  select version, author, reason, created_at, document, effects, coalesce(base, version) as base,
    login, via
  from dispatcher.routing_versions;

create or replace view audit.ramp_moves as
  select m.ramp, r.route, m.at, m.author, m.move, m.step, r.steps, m.version, m.reason, m.login,
    m.via
  from dispatcher.ramp_moves m join dispatcher.ramps r on r.id = m.ramp;

create or replace view audit.operator_actions as
  select id, at, login, author, action, subject, via from dispatcher.operator_actions;

create or replace view facts.ambiguous as
  select message_seq, attempt, last, step, opened_at, until, next_at, asked, closed_at, verdict,
    author,
    case when has_table_privilege('dispatcher.ambiguous'::regclass, 'select') then note
      else '' end as note,
    coalesce(login, '') as login, via
  from dispatcher.ambiguous;

create or replace view facts.dead_records as
  select m.seq, case when length(m.id) <= 64 then m.id end as id, m.lane, m.tenant, m.reason,
    m.detail, m.received_at, m.topic, m.kafka_partition, m.kafka_offset,
    r.at as replayed_at, r.author as replayed_by, r.new_id as replayed_as, r.via as replayed_via
  from dispatcher.messages m
  left join lateral (
    select a.at, a.author, a.new_id, a.via from dispatcher.operator_actions a
    where a.message_seq = m.seq order by a.id desc limit 1) r on true
  where m.detail is not null;

create or replace view audit.dead_records as
  select id, lane, tenant, reason, detail, received_at, topic, kafka_partition, kafka_offset,
    replayed_at, replayed_by, replayed_as, replayed_via
  from facts.dead_records;

-- The rows of a signed reconciliation are those that were stored with it. Whoever may sign one off
-- may insert rows, and could add some to the result of somebody else. The owner is not refused, as
-- in 018_final_rows.sql.
create function dispatcher.refuse_addition() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
  if not has_table_privilege(session_user, tg_relid, 'trigger') and exists (
    select from added a join dispatcher.reconciliations r on r.id = a.reconciliation
    where r.xmin <> pg_current_xact_id()::xid)
  then
    raise exception 'a reconciliation that was signed off gets no more rows'
      using errcode = 'insufficient_privilege';
  end if;
  return null;
end
$$;

create trigger totals_signed after insert on dispatcher.reconciliation_totals
  referencing new table as added for each statement
  execute function dispatcher.refuse_addition();
create trigger differences_signed after insert on dispatcher.reconciliation_differences
  referencing new table as added for each statement
  execute function dispatcher.refuse_addition();
