-- Top-ups of prepaid budgets and signed results of reconcile become part of the log of hashes: see
-- 012_seals.sql and docs/evidence.md.

-- Looks at closings have them too: those made from finance_from to to_at. The first such look has
-- all that there are. finance_from is null in looks of builds that sealed closings alone, so that
-- nothing is missed there, and those looks stay as they were signed.
alter table dispatcher.seals add finance_from timestamptz;

create or replace view audit.seals as
  select number, from_at, to_at, at, again, size, leaves, nodes, checkpoint, closings, finance_from
  from dispatcher.seals;

-- Finance rows are top-ups and signed results. seq is -(2^56 + id) of a top-up and -(2^57 + id) of
-- a result: versions and closings have no such numbers. A result is hashed with its totals and its
-- differences. These are hashed one by one, and the hashes are sorted, as those of figures are. The
-- reason of a top-up is not hashed, because people write numbers into it.
create view facts.finance_evidence as
  select -(1::bigint << 56) - id as seq, at,
    dispatcher.half_hash(json_build_array(id, dispatcher.micros(at), login, author, channel, scope,
      currency, micros, before, granted, key)) as intake,
    null::bytea as totals, null::bytea as differences
  from dispatcher.top_ups
  union all
  select -(1::bigint << 57) - r.id, r.at,
    dispatcher.half_hash(json_build_array(r.id, r.channel, r.file_digest,
      dispatcher.micros(r.from_at), dispatcher.micros(r.to_at), r.revision, r.complete,
      dispatcher.micros(r.at), r.author, r.login, r.reason, r.lines, r.matched, r.ours_only,
      r.theirs_only, r.differences, r.ambiguous, r.resolved)),
    (select substring(sha256(string_agg(h, '' order by h)) from 1 for 16)
      from (select dispatcher.half_hash(json_build_array(currency, ours_micros, theirs_micros)) as h
        from dispatcher.reconciliation_totals t where t.reconciliation = r.id) t),
    (select substring(sha256(string_agg(h, '' order by h)) from 1 for 16)
      from (select dispatcher.half_hash(json_build_array(kind, message_id, attempt, line, reference,
          dispatcher.micros(at), ours, theirs, currency)) as h
        from dispatcher.reconciliation_differences d where d.reconciliation = r.id) d)
  from dispatcher.reconciliations r;
