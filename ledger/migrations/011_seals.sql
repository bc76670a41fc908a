-- What shows whether rows were changed by somebody else than the dispatcher. Some minutes after they
-- were received, hashes of messages and of what became of them go into a log that only grows, in the
-- form of the transparency logs (RFC 6962), and its head is signed with a key that is not in the
-- database. Later looks at the same hour add what has changed since.

-- One row for each look. The messages were received from from_at to to_at, and read at at. again is
-- false for the first look, and the first looks leave no gap. leaves are the new ones, 74 bytes each:
-- see facts.evidence and docs/evidence.md. size is how many leaves the log has with them, nodes the
-- heads of its perfect subtrees, from which it goes on, and checkpoint its signed head. leaves go
-- with the rows that they are about.
create table dispatcher.seals (
  number     bigint primary key check (number > 0),
  from_at    timestamptz not null,
  to_at      timestamptz not null check (to_at > from_at),
  at         timestamptz not null,
  again      boolean not null,
  size       bigint not null,
  leaves     bytea not null,
  nodes      bytea not null,
  checkpoint text not null
);
create index seals_from_at on dispatcher.seals (from_at, at);
create index seals_first on dispatcher.seals (number) where not again;

create index seals_leaves on dispatcher.seals (to_at) where octet_length(leaves) > 0;

-- forget_leaves empties the looks at messages that were dropped. Their checkpoints stay.
create function dispatcher.forget_leaves(before timestamptz) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
begin atomic
  update dispatcher.seals set leaves = '' from dispatcher.least_kept k
  where octet_length(leaves) > 0 and to_at < least(before, clock_timestamp() - k.facts);
end;
revoke execute on function dispatcher.forget_leaves from public;

create view audit.seals as
  select number, from_at, to_at, at, again, size, leaves, nodes, checkpoint from dispatcher.seals;

-- An instant as it stands in evidence: in microseconds since 1970.
create function dispatcher.micros(at timestamptz) returns bigint
language sql immutable parallel safe return (extract(epoch from at) * 1000000)::bigint;

-- The first half of the SHA-256 of a JSON text.
create function dispatcher.half_hash(what json) returns bytea
language sql immutable parallel safe return substring(sha256(convert_to(what::text, 'UTF8')) from 1 for 16);

-- One row per message, with hashes of what is audited of it. While it is still to be sent, its state is
-- open, and there is nothing to tell but its intake. open says that plan and attempts are not final: an
-- answer is still to come or to be found out.
create view facts.evidence as
  select m.seq, m.id, m.received_at, case when o.open then 'open' else m.state end as state,
    o.open or coalesce(a.open, false) as open,
    dispatcher.half_hash(json_build_array(m.id, m.lane, m.tenant, m.topic, m.kafka_partition, m.kafka_offset,
      dispatcher.micros(m.received_at), m.calling_code, m.number_hmac, m.envelope_hmac)) as intake,
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

-- The same for routing versions, which never change: who applied which document, when and why.
create view facts.version_evidence as
  select version, created_at,
    dispatcher.half_hash(json_build_array(version, author, reason, dispatcher.micros(created_at), base)) as intake,
    dispatcher.half_hash(json_build_array(document, routes, effects)) as plan
  from dispatcher.routing_versions;
