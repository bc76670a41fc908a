-- guarantee 4: Every choice can be derived again
-- A choice has its version, a draw has its key, and a fallback has its ranking.
select format('message %s: %s', m.id, case
    when m.routing_version is null then 'its choice has no routing version'
    when v.version is null then format('its routing version %s does not exist', m.routing_version)
    when m.draw is not null and m.draw_key_id is null then 'its draw has no key'
    when m.draw is not null and m.first_choice is null then 'its draw picked no channel'
    else format('attempt %s is a fallback and has no ranking', a.attempt)
  end) as detail
from dispatcher.messages m
left join dispatcher.routing_versions v on v.version = m.routing_version
left join dispatcher.all_attempts a on a.message_seq = m.seq and a.reason = 'fallback'
  and a.ranking is null and a.message_seq >= :first and a.message_seq < :next
where m.seq >= :first and m.seq < :next
  and (v.version is null and (m.first_choice is not null or m.routing_version is not null or m.attempts > 0)
    or m.draw is not null and (m.draw_key_id is null or m.first_choice is null)
    or a.attempt is not null)
