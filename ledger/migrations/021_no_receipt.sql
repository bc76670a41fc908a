-- Routes with no_receipt: a message that was accepted goes on to another channel when no receipt
-- came in time.

-- An accepted message may be sent once more. Until then it has a next_at, and stands in due as what
-- waits does. The checks hold for new rows only: those that are there satisfied stricter ones.
create or replace function dispatcher.legal(was text, becomes text) returns boolean
language sql immutable parallel safe
return was = becomes or case was
  when 'scheduled'   then becomes in ('sending', 'waiting', 'rejected', 'failed')
  when 'waiting'     then becomes in ('sending', 'retry', 'accepted', 'delivered', 'undelivered',
    'rejected', 'failed', 'unknown')
  when 'retry'       then becomes in ('sending', 'waiting', 'accepted', 'delivered', 'undelivered',
    'rejected', 'failed', 'unknown')
  when 'sending'     then becomes in ('waiting', 'retry', 'accepted', 'delivered', 'undelivered',
    'no_receipt', 'rejected', 'failed', 'unknown')
  when 'accepted'    then becomes in ('sending', 'delivered', 'undelivered', 'no_receipt')
  when 'no_receipt'  then becomes in ('delivered', 'undelivered')
  when 'undelivered' then becomes = 'delivered'
  when 'rejected'    then becomes = 'delivered'
  when 'failed'      then becomes = 'delivered'
  when 'unknown'     then becomes in ('waiting', 'retry', 'accepted', 'delivered', 'undelivered',
    'rejected', 'failed')
  else false
end;

drop trigger messages_legal_transition on dispatcher.messages;
create trigger messages_legal_transition after update of state on dispatcher.messages
  for each row when (not dispatcher.legal(old.state, new.state)
    or (old.state = 'accepted' and old.next_at is null and new.state = 'sending'))
  execute function dispatcher.refuse_transition();

alter table dispatcher.messages drop constraint if exists messages_next_at,
  add constraint messages_next_at check (case when next_at is null
    then state not in ('scheduled', 'waiting', 'retry')
    else state in ('scheduled', 'waiting', 'retry', 'accepted') end) not valid;
alter table dispatcher.attempts drop constraint if exists attempts_reason_check,
  add constraint attempts_reason_check
    check (reason in ('first_choice', 'fallback', 'retry', 'resend', 'no_receipt')) not valid;

-- What waits in a lane is counted every second. A message that was accepted does not wait, and there
-- may be very many: due_counted, which earlier releases count by, lists them too.
create index due_waiting on dispatcher.due (lane) where state not in ('scheduled', 'accepted')
  and reason is distinct from 'paused' and reason is distinct from 'quiet_hours';

-- taken_at is when the answer was booked that said last of an accepted message that it was taken;
-- null for any other message. receipt_came: a last word has come about a part of an attempt that
-- was accepted.
alter type dispatcher.due_message add attribute taken_at timestamptz, add attribute receipt_came boolean;

create or replace function dispatcher.lock_due(picked bigint[])
returns setof dispatcher.due_message
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
    select o.m, p.envelope, p.recipient, t.accepted_at, t.claimed_at,
      (o.m).possible_duplicate and exists (
        select from dispatcher.attempts e
        where e.message_seq = (o.m).seq and e.message_seq = any(picked) and e.outcome in ('unknown', 'accepted')
          and not exists (
            select from dispatcher.ambiguous b where b.message_seq = e.message_seq
              and e.attempt >= b.attempt and e.attempt <= b.last and b.verdict = 'not_taken')),
      case when (o.m).state = 'accepted' then (
        select max(y.settled_at) from dispatcher.attempts y
        where y.message_seq = (o.m).seq and y.message_seq = any(picked) and y.outcome = 'accepted') end,
      (o.m).state = 'accepted' and exists (
        select from dispatcher.receipts r join dispatcher.attempts y on y.message_seq = r.message_seq
          and y.attempt = r.attempt and y.message_seq = any(picked) and y.outcome = 'accepted'
        where r.message_seq = (o.m).seq and r.state in ('delivered', 'undelivered'))
    from (
      select l from unnest(picked) with ordinality as u(seq, nr)
      join dispatcher.messages l on l.seq = u.seq
      where l.seq = any(picked) and l.next_at <= now()
      order by u.nr for update of l skip locked
    ) as o(m)
    left join lateral (
      select y.envelope, y.recipient from dispatcher.payloads y
      where y.seq = (o.m).seq and y.seq = any(picked) offset 0) p on true
    left join lateral (
      select coalesce(a.ticket_at, a.claimed_at) as accepted_at, a.claimed_at
      from dispatcher.attempts a
      where (o.m).pinned is not null and a.message_seq = (o.m).seq and a.message_seq = any(picked)
        and a.attempt = (o.m).attempts and a.channel = (o.m).pinned
        and a.held_until is not null and not a.freed
      for update skip locked) t on true;
end
$$;

-- A message that may go on has not ended: attempts may follow.
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
  cross join lateral (select m.state = 'sending' or m.next_at is not null as open) o
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
