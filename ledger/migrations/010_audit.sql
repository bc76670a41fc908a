-- Schema audit is stable: columns may be added, and none is renamed or removed. No view shows a
-- number or a text. People write numbers into reasons, so those of actions on messages, opt-outs,
-- erasures and top-ups are left out. Views of figures and seals are in 011_figures.sql and
-- 012_seals.sql.
create schema audit;

create view audit.messages as
  select id, lane, tenant, route, routing_version, draw, draw_size, draw_key_id, first_choice,
    state, segments, alphabet, received_at, finished_at, topic, kafka_partition, kafka_offset,
    possible_duplicate, calling_code, number_hmac, envelope_hmac, sender
  from dispatcher.message_states;

create view audit.attempts as
  select m.id as message_id, a.attempt, a.channel, a.reason, a.outcome, a.provider_reference,
    a.provider_code, a.segments, a.price_micros, a.currency, a.claimed_at, a.settled_at,
    a.delivered_at,
    date_trunc('minute', coalesce(a.ticket_at, a.claimed_at)) as ticket_bucket,
    coalesce(a.ticket_at, a.claimed_at) as ticket_accepted_at,
    a.claimed_at as ticket_last_check_in, coalesce(a.leaves_at, a.claimed_at) as counted_at,
    a.receipt_state, a.receipt_cause, a.receipt_code, a.receipt_at,
    a.unfit is true and a.outcome in ('refused', 'unknown') as unfit, a.contradicted_at, a.ranking
  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq;

-- message_id is null for a receipt whose message is unknown, or not known yet.
create view audit.receipts as
  select m.id as message_id, r.attempt, r.part, r.channel,
    nullif(split_part(r.reference, ' ', 1), '') as reference, r.state, r.cause, r.code,
    r.received_at
  from dispatcher.receipts r left join dispatcher.messages m on m.seq = r.message_seq;

-- People write numbers into notes too. Only a login that may read the table sees them: for finance
-- and auditors, who read views only, note is empty.
create view audit.ambiguous as
  select m.id as message_id, d.attempt, d.last as last_attempt, a.channel, d.step, d.opened_at,
    d.until, d.asked, d.closed_at, d.verdict, d.author,
    case when has_table_privilege('dispatcher.ambiguous'::regclass, 'select') then d.note
      else '' end as note,
    d.login
  from dispatcher.ambiguous d
  join dispatcher.messages m on m.seq = d.message_seq
  join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.attempt;

create view audit.opt_outs as
  select tenant, since, source, channel, author, until, ended_by, ended_channel, ended_author,
    login, ended_login
  from dispatcher.opt_outs;

create view audit.erasures as
  select at, author, tenant, number_hmac, messages, parts, unended, login
  from dispatcher.erasures;

create view audit.limit_windows as
  select channel, scope, window_seconds, window_start, unit, max, granted, reserved, currency,
    next_at, since, null::timestamptz as until
  from dispatcher.limits where window_start > 'epoch'
  union all
  select channel, scope, window_seconds, window_start, unit, max, granted, reserved, currency,
    next_at, since, until
  from dispatcher.limit_history;

create view audit.limit_restarts as
  select channel, scope, window_seconds, unit, restarted_at, version, author, reason, was_start,
    was_granted, window_start, granted, set_aside, login
  from dispatcher.limit_restarts;

create view audit.active as
  select channel, active_max as max, active from dispatcher.channels;

create view audit.top_ups as
  select id, at, login, author, channel, scope, currency, micros, before, granted, key
  from dispatcher.top_ups;

create view audit.routing_versions as
  select version, author, reason, created_at, document, effects, coalesce(base, version) as base,
    login
  from dispatcher.routing_versions;

-- The channels of each route of each version, in the order of their intervals. weight is that of
-- the document and effective_weight the one in force; both are null on a route without weights. On
-- a sticky route, draws are made of number_hmac of audit.messages, not of the id.
create view audit.weights as
  select v.version, r.value ->> 'route' as route, r.value ->> 'mode' as mode,
    r.value ->> 'fallback' as fallback, (r.value ->> 'lowest_first')::boolean as lowest_first,
    m.place::integer, m.channel, w.weight::numeric as weight,
    least(w.weight::numeric,
      (v.effects -> 'weights' -> (r.value ->> 'route') ->> m.channel)::numeric)
      as effective_weight,
    coalesce((r.value ->> 'sticky')::boolean, false) as sticky
  from dispatcher.routing_versions v
  cross join jsonb_array_elements(v.routes) r
  cross join jsonb_array_elements_text(r.value -> 'members') with ordinality m(channel, place)
  left join jsonb_array_elements_text(r.value -> 'weights') with ordinality w(weight, place)
    on w.place = m.place;

create view audit.ramp_moves as
  select m.ramp, r.route, m.at, m.author, m.move, m.step, r.steps, m.version, m.reason, m.login
  from dispatcher.ramp_moves m join dispatcher.ramps r on r.id = m.ramp;

create view audit.guard_trips as
  select id, at, per, subject, action, hour, seen, usual, days, times, at_least, version
  from dispatcher.guard_trips;

create view audit.operator_actions as
  select id, at, login, author, action, subject from dispatcher.operator_actions;

-- The draw keys that the choices of a time need. It counts all messages, so it is slow.
create view audit.draw_keys as
  select draw_key_id, min(received_at) as first_at, max(received_at) as last_at,
    count(*) as messages
  from dispatcher.messages where draw_key_id is not null
  group by draw_key_id;

-- Schema facts is what report, explain and audit verify read, so that finance needs no right to the
-- tables. It shows rows of schema dispatcher without numbers, texts and unkeyed hashes of them. It
-- is internal. messages has the true states, stored_messages those of the table.
create schema facts;

create view facts.messages as
  select seq, id, lane, tenant, topic, kafka_partition, kafka_offset, state, reason, next_at,
    expires_at, route, routing_version, draw, draw_size, draw_key_id, first_choice, segments,
    alphabet, received_at, attempts, tried, rounds, pinned, parts_left, parts_cut,
    possible_duplicate, waiting_since, waits_for, waits, same_key, same_key_until,
    same_key_account, finished_at, seen, detail, number_hmac, envelope_hmac, calling_code, sender
  from dispatcher.message_states;

create view facts.stored_messages as
  select seq, id, lane, tenant, state, received_at, route, routing_version, first_choice, attempts,
    calling_code, number_hmac, segments, sender, reason
  from dispatcher.messages;

create view facts.attempts as
  select message_seq, attempt, channel, reason, segments, price_micros, currency, ranking, outcome,
    unfit, provider_code, provider_reference, claimed_at, settled_at, delivered_at, instance,
    answers, ticket_at, receipt_state, receipt_cause, receipt_code, receipt_at, contradicted_at,
    leaves_at
  from dispatcher.attempts;

create view facts.ids as
  select id, seq from dispatcher.ids_0 union all select id, seq from dispatcher.ids_1;

create view facts.past_ids as
  select id, seq from dispatcher.past_ids;

create view facts.receipts as
  select message_seq, attempt, part, channel, reference, received_at, state
  from dispatcher.receipts;

create view facts.ambiguous as
  select message_seq, attempt, last, step, opened_at, until, next_at, asked, closed_at, verdict,
    author,
    case when has_table_privilege('dispatcher.ambiguous'::regclass, 'select') then note
      else '' end as note
  from dispatcher.ambiguous;

create view facts.routing_versions as
  select version, author, reason, created_at, document, routes, effects, base, login
  from dispatcher.routing_versions;

create view facts.channels as
  select channel, active_max, active, last_assigned, removed_at, ease_rate, ease_since, ease_until
  from dispatcher.channels;

create view facts.limits as
  select channel, scope, window_seconds, unit, currency, configured_max, max, window_start,
    granted, next_at, pace, taken
  from dispatcher.limits;

create view facts.due as
  select state, waits_for, reason, next_at from dispatcher.due;

-- Dead records with their latest replay. The id of a record without one is its position in Kafka,
-- which may be longer than an id; it is shown as null.
create view facts.dead_records as
  select m.seq, case when length(m.id) <= 64 then m.id end as id, m.lane, m.tenant, m.reason,
    m.detail, m.received_at, m.topic, m.kafka_partition, m.kafka_offset,
    r.at as replayed_at, r.author as replayed_by, r.new_id as replayed_as
  from dispatcher.messages m
  left join lateral (
    select a.at, a.author, a.new_id from dispatcher.operator_actions a
    where a.message_seq = m.seq order by a.id desc limit 1) r on true
  where m.detail is not null;

create view audit.dead_records as
  select id, lane, tenant, reason, detail, received_at, topic, kafka_partition, kafka_offset,
    replayed_at, replayed_by, replayed_as
  from facts.dead_records;
