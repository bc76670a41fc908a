-- What operators and guards did becomes part of the log of hashes, as top-ups and signed results
-- are: see 013_sealed_finance.sql. evidence is 0 for rows of earlier builds, which nobody sealed.
alter table dispatcher.operator_actions add column evidence smallint not null default 0;
alter table dispatcher.ramp_moves add column evidence smallint not null default 0;
alter table dispatcher.limit_restarts add column evidence smallint not null default 0;
alter table dispatcher.guard_trips add column evidence smallint not null default 0;
alter table dispatcher.erasures add column evidence smallint not null default 0;
alter table dispatcher.operator_actions alter column evidence set default 1;
alter table dispatcher.ramp_moves alter column evidence set default 1;
alter table dispatcher.limit_restarts alter column evidence set default 1;
alter table dispatcher.guard_trips alter column evidence set default 1;
alter table dispatcher.erasures alter column evidence set default 1;

-- seq of the new kinds is -(2^58 + n * 2^54 + id), n from 0. Reasons are not hashed where people
-- write numbers into them, and of an erasure not what is counted while it runs.
create or replace view facts.finance_evidence as
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
  from dispatcher.reconciliations r
  union all
  select -(1::bigint << 58) - id, at,
    dispatcher.half_hash(json_build_array(id, dispatcher.micros(at), login, author, via, action,
      subject, message_seq, new_id)), null, null
  from dispatcher.operator_actions where evidence = 1
  union all
  select -(1::bigint << 58) - (1::bigint << 54) - seq, at,
    dispatcher.half_hash(json_build_array(seq, ramp, dispatcher.micros(at), login, author, via,
      move, step, version, reason)), null, null
  from dispatcher.ramp_moves where evidence = 1
  union all
  select -(1::bigint << 58) - (2::bigint << 54) - id, restarted_at,
    dispatcher.half_hash(json_build_array(id, channel, scope, window_seconds, unit,
      dispatcher.micros(restarted_at), version, login, author, via, reason,
      dispatcher.micros(was_start), was_granted, dispatcher.micros(window_start), granted,
      set_aside)), null, null
  from dispatcher.limit_restarts where evidence = 1
  union all
  select -(1::bigint << 58) - (3::bigint << 54) - id, at,
    dispatcher.half_hash(json_build_array(id, dispatcher.micros(at), per, subject, action,
      dispatcher.micros(hour), seen, usual, days, times, at_least, version)), null, null
  from dispatcher.guard_trips where evidence = 1
  union all
  select -(1::bigint << 58) - (4::bigint << 54) - id, at,
    dispatcher.half_hash(json_build_array(id, dispatcher.micros(at), login, author, tenant,
      number_hmac, parts)), null, null
  from dispatcher.erasures where evidence = 1;
