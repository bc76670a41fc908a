-- The JSON texts of facts.evidence, so that whoever sees a proof can read what it proves. later has
-- the notes of operators, in which people write numbers: it is null for finance and auditors, who
-- read views only, if the message was ambiguous. later_at is the newest time in attempts and later.
create view dispatcher.evidence_texts as
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
    greatest(m.finished_at, a.later_at, d.later_at) as later_at,
    d.ambiguous is not null as noted
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
    from dispatcher.ambiguous where message_seq = m.seq and not o.open) d on true;

create or replace view facts.evidence as
  select seq, id, received_at, state, open, dispatcher.half_hash(intake) as intake,
    dispatcher.half_hash(plan) as plan, dispatcher.half_hash(attempts) as attempts,
    dispatcher.half_hash(later) as later, later_at
  from dispatcher.evidence_texts;

create view facts.evidence_texts as
  select seq, intake, plan, attempts,
    case when not noted or has_table_privilege('dispatcher.ambiguous'::regclass, 'select')
      then later end as later
  from dispatcher.evidence_texts;
