-- What leads from the agreed to the carried messages, step by step, in segments and money too.

-- cause is why no channel is known to have taken the messages of the row: rejected, opted_out,
-- failed, expired, cancelled, no_channel, no_answer, or open for those that have not ended. It is
-- empty for messages that a channel took. text_segments are those of the messages' texts, while
-- segments are those that the channel billed.
alter table dispatcher.choice_figures add column if not exists cause text not null default '';
alter table dispatcher.carried_figures
  add column if not exists text_segments bigint not null default 0;

-- figures says which columns a revision of a day filled in: 1 is without these two, 2 is with them.
-- So a day whose newest revision has 1 has no such figures, and 0 in them means nothing.
alter table dispatcher.closings add column if not exists figures smallint not null default 1;

create or replace view facts.stored_messages as
  select seq, id, lane, tenant, state, received_at, route, routing_version, first_choice, attempts, calling_code,
    number_hmac, segments, sender, reason
  from dispatcher.messages;

create or replace view audit.closings as
  select day, revision, zone, from_at, to_at, at, changes, figures from dispatcher.closings;
create or replace view audit.choice_figures as
  select day, revision, hour, routing_version, route, channel, tenant, calling_code, messages,
         rejected, failed, unknown, open, segments, sender, cause
  from dispatcher.choice_figures;
create or replace view audit.carried_figures as
  select day, revision, hour, routing_version, route, first_choice, channel, cause, tenant, calling_code, messages,
         sender, currency, segments, cost_micros, text_segments
  from dispatcher.carried_figures;

-- later_at is the newest of the times in later. A change of later that brings none is not the
-- dispatcher's.
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
      dispatcher.micros(m.finished_at), a.receipts, d.ambiguous)) end as later,
    greatest(m.finished_at, a.later_at, d.later_at) as later_at
  from dispatcher.message_states m
  cross join lateral (select m.state in ('scheduled', 'waiting', 'retry', 'sending') as open) o
  left join lateral (
    select bool_or(outcome is null or outcome = 'unknown') as open,
      json_agg(json_build_array(attempt, channel, reason, segments, price_micros, currency, ranking,
        dispatcher.micros(claimed_at), dispatcher.micros(ticket_at), dispatcher.micros(leaves_at),
        dispatcher.micros(settled_at), outcome, provider_reference, provider_code, unfit) order by attempt) as attempts,
      json_agg(json_build_array(receipt_state, receipt_cause, receipt_code, dispatcher.micros(receipt_at),
        dispatcher.micros(delivered_at), dispatcher.micros(contradicted_at), proved) order by attempt) as receipts,
      max(greatest(settled_at, receipt_at, delivered_at, contradicted_at)) as later_at
    from dispatcher.attempts where message_seq = m.seq and not o.open) a on true
  left join lateral (
    select json_agg(json_build_array(attempt, last, dispatcher.micros(opened_at), dispatcher.micros(closed_at), verdict,
        author, note) order by attempt, key) as ambiguous,
      max(greatest(opened_at, closed_at)) as later_at
    from dispatcher.ambiguous where message_seq = m.seq and not o.open) d on true;

create or replace view facts.receipts as
  select message_seq, attempt, part, channel, reference, received_at, state from dispatcher.receipts;
