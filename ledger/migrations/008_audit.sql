-- What auditors rely on. Columns may be added, never renamed. No view shows a phone number or a
-- text: both live in dispatcher.payloads alone.
create schema audit;

create view audit.messages as
  select id, lane, tenant, route, routing_version, draw, draw_size, draw_key_id, first_choice, state,
         segments, alphabet, received_at, finished_at, topic, kafka_partition, kafka_offset, possible_duplicate,
         calling_code, number_hmac, envelope_hmac
  from dispatcher.message_states;

create view audit.attempts as
  select m.id as message_id, a.attempt, a.channel, a.reason, a.outcome, a.provider_reference, a.provider_code,
         a.segments, a.price_micros, a.currency, a.claimed_at, a.settled_at, a.delivered_at,
         date_trunc('minute', coalesce(a.ticket_at, a.claimed_at)) as ticket_bucket,
         coalesce(a.ticket_at, a.claimed_at) as ticket_accepted_at, a.claimed_at as ticket_last_check_in,
         coalesce(a.leaves_at, a.claimed_at) as counted_at,
         a.receipt_state, a.receipt_cause, a.receipt_code, a.receipt_at,
         a.unfit is true and a.outcome in ('refused', 'unknown') as unfit, a.contradicted_at, a.ranking
  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq;

-- message_id is null for a receipt whose message is not known, or not yet.
create view audit.receipts as
  select m.id as message_id, r.attempt, r.part, r.channel, nullif(split_part(r.reference, ' ', 1), '') as reference,
         r.state, r.cause, r.code, r.received_at
  from dispatcher.receipts r left join dispatcher.messages m on m.seq = r.message_seq;

create view audit.ambiguous as
  select m.id as message_id, d.attempt, d.last as last_attempt, a.channel, d.step, d.opened_at, d.until, d.asked,
         d.closed_at, d.verdict, d.author, d.note
  from dispatcher.ambiguous d
  join dispatcher.messages m on m.seq = d.message_seq
  join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.attempt;

-- Reasons of opt-outs are left out: people write numbers into them.
create view audit.opt_outs as
  select tenant, since, source, channel, author, until, ended_by, ended_channel, ended_author
  from dispatcher.opt_outs;

-- Reasons are left out here too. messages and parts of incoming messages were erased; unended are
-- the messages that had not ended, and were left.
create view audit.erasures as
  select at, author, tenant, number_hmac, messages, parts, unended
  from dispatcher.erasures;

create view audit.limit_windows as
  select channel, scope, window_seconds, window_start, unit, max, granted, reserved, currency, next_at, since,
    null::timestamptz as until
  from dispatcher.limits where window_start > 'epoch'
  union all
  select channel, scope, window_seconds, window_start, unit, max, granted, reserved, currency, next_at, since, until
  from dispatcher.limit_history;

create view audit.limit_restarts as
  select channel, scope, window_seconds, unit, restarted_at, version, author, reason, was_start, was_granted,
    window_start, granted, set_aside
  from dispatcher.limit_restarts;

create view audit.active as
  select channel, active_max as max, active from dispatcher.channels;

create view audit.routing_versions as
  select version, author, reason, created_at, document, effects, coalesce(base, version) as base
  from dispatcher.routing_versions;

-- The members of the routes of every version, in the order in which intervals are laid out. weight is
-- that of the document, effective_weight the one in force; both are null on a route without weights.
create view audit.weights as
  select v.version, r.value ->> 'route' as route, r.value ->> 'mode' as mode, r.value ->> 'fallback' as fallback,
    (r.value ->> 'lowest_first')::boolean as lowest_first, m.place::integer, m.channel,
    w.weight::numeric as weight,
    least(w.weight::numeric, (v.effects -> 'weights' -> (r.value ->> 'route') ->> m.channel)::numeric) as effective_weight
  from dispatcher.routing_versions v
  cross join jsonb_array_elements(v.routes) r
  cross join jsonb_array_elements_text(r.value -> 'members') with ordinality m(channel, place)
  left join jsonb_array_elements_text(r.value -> 'weights') with ordinality w(weight, place) on w.place = m.place;

create view audit.ramp_moves as
  select m.ramp, r.route, m.at, m.author, m.move, m.step, r.steps, m.version, m.reason
  from dispatcher.ramp_moves m join dispatcher.ramps r on r.id = m.ramp;

-- Which draw keys a day's choices need: all messages are counted, so it takes a while.
create view audit.draw_keys as
  select draw_key_id, min(received_at) as first_at, max(received_at) as last_at, count(*) as messages
  from dispatcher.messages where draw_key_id is not null
  group by draw_key_id;

-- What the commands "report", "explain" and "audit verify" read, so that they need no right to the
-- tables: the rows of schema dispatcher as they are, without numbers, texts and what stands for a
-- number. Internal, as those are: only schema audit is stable. stored_messages has the states that
-- are written, messages those that messages have.
create schema facts;

create view facts.messages as
  select seq, id, lane, tenant, topic, kafka_partition, kafka_offset, state, reason, next_at, expires_at, route,
    routing_version, draw, draw_size, draw_key_id, first_choice, segments, alphabet, received_at, attempts, tried, rounds,
    pinned, parts_left, parts_cut, possible_duplicate, waiting_since, waits_for, waits, same_key, same_key_until,
    same_key_account, finished_at, seen, detail, number_hmac, envelope_hmac, calling_code
  from dispatcher.message_states;

create view facts.stored_messages as
  select seq, id, lane, tenant, state, received_at, route, routing_version, first_choice, attempts, calling_code,
    number_hmac
  from dispatcher.messages;

create view facts.attempts as
  select message_seq, attempt, channel, reason, segments, price_micros, currency, ranking, outcome, unfit, provider_code,
    provider_reference, claimed_at, settled_at, delivered_at, instance, answers, ticket_at, receipt_state, receipt_cause,
    receipt_code, receipt_at, contradicted_at
  from dispatcher.attempts;

create view facts.ids as
  select id, seq from dispatcher.ids_0 union all select id, seq from dispatcher.ids_1;

create view facts.past_ids as
  select id, seq from dispatcher.past_ids;

create view facts.receipts as
  select message_seq, attempt, part, channel, reference, received_at from dispatcher.receipts;

create view facts.ambiguous as
  select message_seq, attempt, last, step, opened_at, until, next_at, asked, closed_at, verdict, author, note
  from dispatcher.ambiguous;

create view facts.routing_versions as
  select version, author, reason, created_at, document, routes, effects, base from dispatcher.routing_versions;

create view facts.channels as
  select channel, active_max, active, last_assigned, removed_at, ease_rate, ease_since, ease_until
  from dispatcher.channels;

create view facts.limits as
  select channel, scope, window_seconds, unit, currency, configured_max, max, window_start, granted, next_at, pace, taken
  from dispatcher.limits;

create view facts.due as
  select state, waits_for, reason, next_at from dispatcher.due;
