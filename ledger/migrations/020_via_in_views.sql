-- How an action came in, in the views of finance and auditors: the last column of each.
create or replace view audit.ambiguous as
  select m.id as message_id, d.attempt, d.last as last_attempt, a.channel, d.step, d.opened_at,
    d.until, d.asked, d.closed_at, d.verdict, d.author,
    case when has_table_privilege('dispatcher.ambiguous'::regclass, 'select') then d.note
      else '' end as note,
    d.login, d.via
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
