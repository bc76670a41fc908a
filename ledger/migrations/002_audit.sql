-- What auditors rely on. Columns may be added, never renamed. No view shows a phone
-- number or a text: both live in messages.envelope alone.
create schema audit;

create view audit.messages as
  select id, lane, tenant, route, routing_version, draw, draw_size, draw_key_id, first_choice, state,
         segments, alphabet, received_at, finished_at, topic, kafka_partition, kafka_offset, possible_duplicate
  from dispatcher.messages;

create view audit.attempts as
  select m.id as message_id, a.attempt, a.channel, a.reason, a.outcome, a.provider_reference, a.provider_code,
         a.segments, a.price_micros, a.currency, a.claimed_at, a.settled_at, a.delivered_at
  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq;

create view audit.limit_windows as
  select channel, scope, window_seconds, window_start, unit, max, granted, reserved
  from dispatcher.limits where window_start > 'epoch'
  union all
  select channel, scope, window_seconds, window_start, unit, max, granted, reserved
  from dispatcher.limit_history;

create view audit.active as
  select channel, active_max as max, active from dispatcher.channels;

create view audit.routing_versions as
  select version, author, reason, created_at, document from dispatcher.routing_versions;
