-- The log of hashes. It shows whether rows were changed by anything but the dispatcher. Some
-- minutes after messages were received, hashes of them and of their outcome are appended to a log
-- in the form of RFC 6962 (Certificate Transparency). The head of the log is signed with a key that
-- is not in the database. docs/evidence.md describes it.

-- One row per look: the entries that it added to the log. A look reads the messages that were
-- received from from_at to to_at. The first looks leave no gap between them. Further looks at the
-- same time add what has changed.
create table dispatcher.seals (
  number     bigint primary key check (number > 0),
  from_at    timestamptz not null,
  to_at      timestamptz not null check (to_at > from_at),
  at         timestamptz not null,
  again      boolean not null,               -- a further look
  closings   boolean not null default false, -- has the closings made in that time, not messages
  size       bigint not null, -- entries in the log so far
  leaves     bytea not null,  -- the new entries, 74 bytes each; emptied when the rows are dropped
  nodes      bytea not null,  -- heads of the log's perfect subtrees, from which it is continued
  checkpoint text not null    -- the signed head
);
create index seals_from_at on dispatcher.seals (from_at, at);
create index seals_first on dispatcher.seals (number) where not again;
create index seals_closings on dispatcher.seals (number) where closings;
create index seals_leaves on dispatcher.seals (to_at) where octet_length(leaves) > 0;

-- forget_leaves empties looks at messages that were dropped. Checkpoints stay, and so do the leaves
-- of closings, because figures stay.
create function dispatcher.forget_leaves(before timestamptz) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
begin atomic
  update dispatcher.seals set leaves = '' from dispatcher.least_kept k
  where octet_length(leaves) > 0 and to_at < least(before, clock_timestamp() - k.facts)
    and not closings;
end;
revoke execute on function dispatcher.forget_leaves from public;

create view audit.seals as
  select number, from_at, to_at, at, again, size, leaves, nodes, checkpoint, closings
  from dispatcher.seals;

-- Instants are hashed as microseconds since 1970.
create function dispatcher.micros(at timestamptz) returns bigint
language sql immutable parallel safe return (extract(epoch from at) * 1000000)::bigint;

-- The first half of the SHA-256 of a JSON text.
create function dispatcher.half_hash(what json) returns bytea
language sql immutable parallel safe
return substring(sha256(convert_to(what::text, 'UTF8')) from 1 for 16);

-- One row per message, with its hashes. A message that may still be sent has the state open and
-- only the hash of its intake. The column open is also true if an attempt has no outcome or an
-- unknown one, so that plan and attempts may change. later_at is the newest time in later: a change
-- of later without a newer time was not made by the dispatcher.
--
-- A hash without sender is computed as it was before messages had that column.
create view facts.evidence as
  select m.seq, m.id, m.received_at, case when o.open then 'open' else m.state end as state,
    o.open or coalesce(a.open, false) as open,
    dispatcher.half_hash(case when m.sender is null
      then json_build_array(m.id, m.lane, m.tenant, m.topic, m.kafka_partition, m.kafka_offset,
        dispatcher.micros(m.received_at), m.calling_code, m.number_hmac, m.envelope_hmac)
      else json_build_array(m.id, m.lane, m.tenant, m.topic, m.kafka_partition, m.kafka_offset,
        dispatcher.micros(m.received_at), m.calling_code, m.number_hmac, m.envelope_hmac, m.sender)
      end) as intake,
    case when not o.open then dispatcher.half_hash(json_build_array(m.route, m.routing_version,
      m.draw, m.draw_size, m.draw_key_id, m.first_choice, m.segments, m.alphabet)) end as plan,
    case when not o.open then dispatcher.half_hash(a.attempts) end as attempts,
    case when not o.open then dispatcher.half_hash(json_build_array(m.state, m.reason,
      m.possible_duplicate, dispatcher.micros(m.finished_at), a.receipts, d.ambiguous))
      end as later,
    greatest(m.finished_at, a.later_at, d.later_at) as later_at
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
      max(greatest(settled_at, receipt_at, delivered_at, contradicted_at)) as later_at
    from dispatcher.attempts where message_seq = m.seq and not o.open) a on true
  left join lateral (
    select json_agg(json_build_array(attempt, last, dispatcher.micros(opened_at),
        dispatcher.micros(closed_at), verdict, author, note) order by attempt, key) as ambiguous,
      max(greatest(opened_at, closed_at)) as later_at
    from dispatcher.ambiguous where message_seq = m.seq and not o.open) d on true;

-- The same for routing versions, which never change. See routing_versions.evidence.
create view facts.version_evidence as
  select version, created_at,
    dispatcher.half_hash(case when evidence = 1 or login is null
      then json_build_array(version, author, reason, dispatcher.micros(created_at), base)
      else json_build_array(version, author, reason, dispatcher.micros(created_at), base, login)
      end) as intake,
    dispatcher.half_hash(json_build_array(document, routes, effects)) as plan
  from dispatcher.routing_versions;

-- The same for each revision of a closed day and its figures. Rows of figures are hashed one by
-- one, and the hashes are sorted, so that the order depends on no collation. A revision that has
-- figures and no closing is listed too, with at and intake null.
create view facts.closing_evidence as
  select k.day, k.revision, c.at,
    case when c.day is not null then dispatcher.half_hash(json_build_array(c.day, c.revision,
      c.zone, dispatcher.micros(c.from_at), dispatcher.micros(c.to_at), dispatcher.micros(c.at),
      c.changes, c.figures)) end as intake,
    (select substring(sha256(string_agg(h, '' order by h)) from 1 for 16)
      from (select dispatcher.half_hash(json_build_array(dispatcher.micros(hour), routing_version,
          route, channel, tenant, calling_code, messages, rejected, failed, unknown, open, segments,
          sender, cause)) as h
        from dispatcher.choice_figures f where f.day = k.day and f.revision = k.revision) f)
      as choices,
    (select substring(sha256(string_agg(h, '' order by h)) from 1 for 16)
      from (select dispatcher.half_hash(json_build_array(dispatcher.micros(hour), routing_version,
          route, channel, reason, currency, tenant, calling_code, attempts, submitted, accepted,
          rejected, refused, throttled, unknown, unsent, pending, delivered, undelivered,
          no_receipt, segments, cost_micros, unknown_segments, unknown_micros, delivered_segments,
          delivered_micros, sender)) as h
        from dispatcher.attempt_figures f where f.day = k.day and f.revision = k.revision) f)
      as attempts,
    (select substring(sha256(string_agg(h, '' order by h)) from 1 for 16)
      from (select dispatcher.half_hash(json_build_array(dispatcher.micros(hour), routing_version,
          route, first_choice, channel, cause, tenant, calling_code, messages, sender, currency,
          segments, cost_micros, text_segments)) as h
        from dispatcher.carried_figures f where f.day = k.day and f.revision = k.revision) f)
      as carried
  from (
    select day, revision from dispatcher.closings
    union select day, revision from dispatcher.choice_figures
    union select day, revision from dispatcher.attempt_figures
    union select day, revision from dispatcher.carried_figures) k
  left join dispatcher.closings c on c.day = k.day and c.revision = k.revision;
