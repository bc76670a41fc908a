-- guarantee 1: Nothing accepted is lost
-- No attempt stays without outcome: its instance closes it or, if that is dead, another one.
--
-- It is checked only if some instance has been running long enough to close them.
select format('attempt %s of message %s on channel %s was claimed at %s and has no outcome; %s',
    a.attempt, m.id, a.channel, to_char(a.claimed_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'),
    case when i.id is null then format('instance %s no longer exists', a.instance)
      else format('instance %s was last seen at %s', i.id,
        to_char(i.last_seen at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')) end) as detail
from dispatcher.all_attempts a
join dispatcher.messages m on m.seq = a.message_seq and m.seq >= :first and m.seq < :next
left join dispatcher.instances i on i.id = a.instance
where a.message_seq >= :first and a.message_seq < :next
  and a.outcome is null and a.claimed_at < now() - interval :'grace'
  and exists (
    select from dispatcher.instances alive
    where alive.left_at is null and alive.last_seen > now() - interval '10 seconds'
      and alive.beating_since < now() - interval :'grace')
