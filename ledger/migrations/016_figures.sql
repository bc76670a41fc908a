-- More of what finance asks of days that are over: by the sender of messages, and what moved to
-- another channel in segments and money too.

-- sender is the sender id that the message came with, if it is a name or a short code. Of a number
-- only the kind stands here, long_code; null is none.
alter table dispatcher.messages add column if not exists sender text;

create or replace view dispatcher.message_states as
  select
    m.seq, m.kafka_offset, m.number_hmac, m.envelope_hmac, m.routing_version, m.draw, m.draw_size,
    m.received_at, m.expires_at, m.next_at, m.waiting_since, m.same_key_until, m.kafka_partition,
    m.calling_code, m.segments, m.attempts, m.rounds, m.possible_duplicate, m.reason, m.id, m.lane,
    m.tenant, m.topic, m.route, m.draw_key_id, m.first_choice, m.alphabet, m.detail, m.pinned,
    m.waits_for, m.same_key, m.same_key_account, m.parts_cut, m.parts_left, m.tried, m.seen,
    m.waits,
    case when a.message_seq is null then m.state
      when a.receipt_state = 'delivered' then 'delivered' else 'accepted' end as state,
    coalesce(m.finished_at, a.delivered_at) as finished_at,
    m.sender
  from dispatcher.messages m
  left join dispatcher.attempts a on m.state = 'sending' and a.message_seq = m.seq
    and a.attempt = m.attempts and a.outcome = 'accepted';

create or replace view facts.messages as
  select seq, id, lane, tenant, topic, kafka_partition, kafka_offset, state, reason, next_at, expires_at, route,
    routing_version, draw, draw_size, draw_key_id, first_choice, segments, alphabet, received_at, attempts, tried, rounds,
    pinned, parts_left, parts_cut, possible_duplicate, waiting_since, waits_for, waits, same_key, same_key_until,
    same_key_account, finished_at, seen, detail, number_hmac, envelope_hmac, calling_code, sender
  from dispatcher.message_states;

create or replace view facts.stored_messages as
  select seq, id, lane, tenant, state, received_at, route, routing_version, first_choice, attempts, calling_code,
    number_hmac, segments, sender
  from dispatcher.messages;

create or replace view audit.messages as
  select id, lane, tenant, route, routing_version, draw, draw_size, draw_key_id, first_choice, state,
         segments, alphabet, received_at, finished_at, topic, kafka_partition, kafka_offset, possible_duplicate,
         calling_code, number_hmac, envelope_hmac, sender
  from dispatcher.message_states;

-- The hash of a message without sender is the one that was sealed before there was the column.
create or replace view facts.evidence as
  select m.seq, m.id, m.received_at, case when o.open then 'open' else m.state end as state,
    o.open or coalesce(a.open, false) as open,
    dispatcher.half_hash(case when m.sender is null
      then json_build_array(m.id, m.lane, m.tenant, m.topic, m.kafka_partition, m.kafka_offset,
        dispatcher.micros(m.received_at), m.calling_code, m.number_hmac, m.envelope_hmac)
      else json_build_array(m.id, m.lane, m.tenant, m.topic, m.kafka_partition, m.kafka_offset,
        dispatcher.micros(m.received_at), m.calling_code, m.number_hmac, m.envelope_hmac, m.sender) end) as intake,
    case when not o.open then dispatcher.half_hash(json_build_array(m.route, m.routing_version, m.draw, m.draw_size,
      m.draw_key_id, m.first_choice, m.segments, m.alphabet)) end as plan,
    case when not o.open then dispatcher.half_hash(a.attempts) end as attempts,
    case when not o.open then dispatcher.half_hash(json_build_array(m.state, m.reason, m.possible_duplicate,
      dispatcher.micros(m.finished_at), a.receipts, d.ambiguous)) end as later
  from dispatcher.message_states m
  cross join lateral (select m.state in ('scheduled', 'waiting', 'retry', 'sending') as open) o
  left join lateral (
    select bool_or(outcome is null or outcome = 'unknown') as open,
      json_agg(json_build_array(attempt, channel, reason, segments, price_micros, currency, ranking,
        dispatcher.micros(claimed_at), dispatcher.micros(ticket_at), dispatcher.micros(leaves_at),
        dispatcher.micros(settled_at), outcome, provider_reference, provider_code, unfit) order by attempt) as attempts,
      json_agg(json_build_array(receipt_state, receipt_cause, receipt_code, dispatcher.micros(receipt_at),
        dispatcher.micros(delivered_at), dispatcher.micros(contradicted_at), proved) order by attempt) as receipts
    from dispatcher.attempts where message_seq = m.seq and not o.open) a on true
  left join lateral (
    select json_agg(json_build_array(attempt, last, dispatcher.micros(opened_at), dispatcher.micros(closed_at), verdict,
        author, note) order by attempt, key) as ambiguous
    from dispatcher.ambiguous where message_seq = m.seq and not o.open) d on true;

-- Figures of days that were closed before have no sender, and of what was carried no segments and
-- money, until the day is corrected.
alter table dispatcher.choice_figures add column if not exists sender text not null default '';
alter table dispatcher.attempt_figures add column if not exists sender text not null default '';
alter table dispatcher.carried_figures
  add column if not exists sender text not null default '',
  add column if not exists currency text not null default '',
  add column if not exists segments bigint not null default 0, -- of the accepted attempts, as their price
  add column if not exists cost_micros bigint not null default 0;

create or replace view audit.choice_figures as
  select day, revision, hour, routing_version, route, channel, tenant, calling_code, messages,
         rejected, failed, unknown, open, segments, sender
  from dispatcher.choice_figures;
create or replace view audit.attempt_figures as
  select day, revision, hour, routing_version, route, channel, reason, currency, tenant, calling_code,
         attempts, submitted, accepted, rejected, refused, throttled, unknown, unsent, pending, delivered,
         undelivered, no_receipt, segments, cost_micros, unknown_segments, unknown_micros,
         delivered_segments, delivered_micros, sender
  from dispatcher.attempt_figures;
create or replace view audit.carried_figures as
  select day, revision, hour, routing_version, route, first_choice, channel, cause, tenant, calling_code, messages,
         sender, currency, segments, cost_micros
  from dispatcher.carried_figures;

-- The release time tells in which second a limit has counted an attempt.
create or replace view facts.attempts as
  select message_seq, attempt, channel, reason, segments, price_micros, currency, ranking, outcome, unfit, provider_code,
    provider_reference, claimed_at, settled_at, delivered_at, instance, answers, ticket_at, receipt_state, receipt_cause,
    receipt_code, receipt_at, contradicted_at, leaves_at
  from dispatcher.attempts;
