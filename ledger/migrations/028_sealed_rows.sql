-- Receipts, details of dead records, opt-outs, ended windows of limits, and the definitions of
-- views and functions become part of the log of hashes: see 012_seals.sql and docs/evidence.md.

-- Looks of format 2 have later_2 of each message, and the windows of limits. Earlier builds make
-- looks of format 1, which stay as they were signed. definitions is the hash of all definitions
-- where a look has leaves of them.
alter table dispatcher.seals add format smallint not null default 1;
alter table dispatcher.seals add definitions bytea;
create index seals_definitions on dispatcher.seals (number) where definitions is not null;

create or replace view audit.seals as
  select number, from_at, to_at, at, again, size, leaves, nodes, checkpoint, closings, finance_from,
    format, definitions
  from dispatcher.seals;

-- later_2 is later with the receipts that came for the message, by their parts, and with the detail
-- of a dead record; it is later where there is neither. A receipt whose part is null is not in it:
-- no settlement has named its reference, and its row is deleted when its time is over.
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
    from dispatcher.receipts where message_seq = m.seq and part is not null
      and received_at is not null and not o.open) r on true;

create or replace view facts.evidence as
  select seq, id, received_at, state, open, dispatcher.half_hash(intake) as intake,
    dispatcher.half_hash(plan) as plan, dispatcher.half_hash(attempts) as attempts,
    dispatcher.half_hash(later) as later, later_at, dispatcher.half_hash(later_2) as later_2
  from dispatcher.evidence_texts;

create or replace view facts.evidence_texts as
  select seq, intake, plan, attempts,
    case when not noted or has_table_privilege('dispatcher.ambiguous'::regclass, 'select')
      then later end as later,
    case when not noted or has_table_privilege('dispatcher.ambiguous'::regclass, 'select')
      then later_2 end as later_2
  from dispatcher.evidence_texts;

-- Messages whose receipts a later message has taken over, because the provider used a reference
-- again: receipts no longer has what came for them.
create view facts.reused_references as
  select a.message_seq as seq, r.message_seq as by_seq
  from dispatcher.attempts a
  cross join lateral unnest(string_to_array(a.provider_reference, ' ')) u (reference)
  join dispatcher.receipts r on r.channel = a.channel and r.reference = u.reference
    and r.message_seq > a.message_seq;

-- Of an opt-out its beginning and its end are sealed, each once. evidence and ended_evidence are 0
-- where an earlier build made them. No hash has the recipient: whoever tries all numbers would find
-- it. Nor has one the reasons, because people write numbers into them.
alter table dispatcher.opt_outs add evidence smallint not null default 0;
alter table dispatcher.opt_outs alter evidence set default 1;
alter table dispatcher.opt_outs add ended_evidence smallint not null default 0;
create index opt_outs_since on dispatcher.opt_outs (since) where evidence = 1;
create index opt_outs_until on dispatcher.opt_outs (until) where ended_evidence = 1;

create or replace function dispatcher.note_opt_out_logins() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    new.login := session_user;
    new.ended_login := case when new.until is not null then session_user end;
    new.ended_evidence := (new.until is not null)::int;
  else
    new.login := old.login;
    if old.until is null and new.until is not null then
      new.ended_login := session_user;
      new.ended_evidence := 1;
    else
      new.ended_login := old.ended_login;
    end if;
  end if;
  return new;
end
$$;

create or replace view audit.opt_outs as
  select tenant, since, source, channel, author, until, ended_by, ended_channel, ended_author,
    login, ended_login, seq as id
  from dispatcher.opt_outs;

create or replace view facts.finance_evidence as
  select -(1::bigint << 56) - id as seq, at,
    dispatcher.half_hash(json_build_array(id, dispatcher.micros(at), login, author, channel, scope,
      currency, micros, before, granted, key)) as intake,
    null::bytea as totals, null::bytea as differences
  from dispatcher.top_ups
  union all
  select -(1::bigint << 57) - r.id, r.at,
    dispatcher.half_hash(json_build_array(r.id, r.channel, r.file_digest,
      dispatcher.micros(r.from_at), dispatcher.micros(r.to_at), r.revision, r.complete,
      dispatcher.micros(r.at), r.author, r.login, r.reason, r.lines, r.matched, r.ours_only,
      r.theirs_only, r.differences, r.ambiguous, r.resolved)),
    (select substring(sha256(string_agg(h, '' order by h)) from 1 for 16)
      from (select dispatcher.half_hash(json_build_array(currency, ours_micros, theirs_micros)) as h
        from dispatcher.reconciliation_totals t where t.reconciliation = r.id) t),
    (select substring(sha256(string_agg(h, '' order by h)) from 1 for 16)
      from (select dispatcher.half_hash(json_build_array(kind, message_id, attempt, line, reference,
          dispatcher.micros(at), ours, theirs, currency)) as h
        from dispatcher.reconciliation_differences d where d.reconciliation = r.id) d)
  from dispatcher.reconciliations r
  union all
  select -(1::bigint << 58) - id, at,
    dispatcher.half_hash(json_build_array(id, dispatcher.micros(at), login, author, via, action,
      subject, message_seq, new_id)), null, null
  from dispatcher.operator_actions where evidence = 1
  union all
  select -(1::bigint << 58) - (1::bigint << 54) - seq, at,
    dispatcher.half_hash(json_build_array(seq, ramp, dispatcher.micros(at), login, author, via,
      move, step, version, reason)), null, null
  from dispatcher.ramp_moves where evidence = 1
  union all
  select -(1::bigint << 58) - (2::bigint << 54) - id, restarted_at,
    dispatcher.half_hash(json_build_array(id, channel, scope, window_seconds, unit,
      dispatcher.micros(restarted_at), version, login, author, via, reason,
      dispatcher.micros(was_start), was_granted, dispatcher.micros(window_start), granted,
      set_aside)), null, null
  from dispatcher.limit_restarts where evidence = 1
  union all
  select -(1::bigint << 58) - (3::bigint << 54) - id, at,
    dispatcher.half_hash(json_build_array(id, dispatcher.micros(at), per, subject, action,
      dispatcher.micros(hour), seen, usual, days, times, at_least, version)), null, null
  from dispatcher.guard_trips where evidence = 1
  union all
  select -(1::bigint << 58) - (4::bigint << 54) - id, at,
    dispatcher.half_hash(json_build_array(id, dispatcher.micros(at), login, author, tenant,
      number_hmac, parts)), null, null
  from dispatcher.erasures where evidence = 1
  union all
  select -(1::bigint << 58) - (5::bigint << 54) - seq, since,
    dispatcher.half_hash(json_build_array(seq, tenant, dispatcher.micros(since), source, channel,
      author, login)), null, null
  from dispatcher.opt_outs where evidence = 1
  union all
  select -(1::bigint << 58) - (6::bigint << 54) - seq, until,
    dispatcher.half_hash(json_build_array(seq, dispatcher.micros(until), ended_by, ended_channel,
      ended_author, ended_login)), null, null
  from dispatcher.opt_outs where ended_evidence = 1;

-- Windows of limits in which something was granted. ends_at is when the window is over at the
-- latest: a day may have 25 hours. Afterwards no claim, settlement or change of the routing changes
-- what is hashed. reserved, next_at and until may still change, and are not.
create view facts.window_evidence as
  select window_seconds, window_start, window_start + case window_seconds when 86400
      then interval '25 hours' else make_interval(secs => window_seconds) end as ends_at,
    dispatcher.half_hash(json_build_array(channel, scope, window_seconds, unit,
      dispatcher.micros(window_start), max, granted, currency, dispatcher.micros(since))) as hash
  from dispatcher.limits where granted > 0
  union all
  select window_seconds, window_start, window_start + case window_seconds when 86400
      then interval '25 hours' else make_interval(secs => window_seconds) end,
    dispatcher.half_hash(json_build_array(channel, scope, window_seconds, unit,
      dispatcher.micros(window_start), max, granted, currency, dispatcher.micros(since)))
  from dispatcher.limit_history where granted > 0;

-- Which migrations made the schema, with the checksums of their files.
create view facts.migrations as
  select version, name, checksum from dispatcher.schema_migrations;
