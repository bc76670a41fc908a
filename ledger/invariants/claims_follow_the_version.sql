-- guarantee 5: A change of routing is atomic and live
-- A message was claimed under the version that was in force.
--
-- Only messages with one attempt that are still as their claim left them are checked; "audit
-- verify" checks the others. Effects of health weighting lock no claim, so for some seconds a claim
-- may still use the version before. One second is allowed in case the clock was set back.
select format('message %s was claimed under version %s at %s, when version %s was in force', m.id,
    m.routing_version, to_char(a.claimed_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS"Z"'),
    (select max(o.version) from dispatcher.routing_versions o where o.created_at <= a.claimed_at)
  ) as detail
from dispatcher.messages m
join dispatcher.all_attempts a on a.message_seq = m.seq and a.attempt = 1
  and a.message_seq >= :first and a.message_seq < :next
join (
  select version, created_at - interval '1 second' as since,
    lead(created_at) over (order by version) + case
      when lead(base < version) over (order by version) then interval '6 seconds'
      else interval '1 second' end as until
  from dispatcher.routing_versions
) v on v.version = m.routing_version
where m.seq >= :first and m.seq < :next and m.state = 'sending' and m.attempts = 1
  and (a.claimed_at < v.since or a.claimed_at > v.until)
