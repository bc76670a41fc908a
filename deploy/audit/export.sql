-- Writes what replay.py reads: weights.csv, with every version of the routing, and choices.csv,
-- with the messages of one business day, a line for each attempt. A message without any has one
-- line. The login needs nothing but the views, and the files hold no number and no text.
--
--   psql "$DISPATCHER_POSTGRES_URL" -v day=2026-11-21 -v zone=Europe/London -f export.sql

copy (
  select version, route, mode, fallback, lowest_first, place, channel, effective_weight as weight,
    sticky
  from audit.weights order by version, route, place
) to stdout with (format csv, header)
\g weights.csv

copy (
  select m.seq, m.id, m.route, m.routing_version as version, m.draw, m.draw_size, m.draw_key_id,
    m.first_choice, a.attempt, a.channel, a.reason, a.ranking, m.number_hmac
  from audit.messages m left join audit.attempts a on a.seq = m.seq
  where m.received_at >= timestamp :'day' at time zone :'zone'
    and m.received_at < (timestamp :'day' + interval '1 day') at time zone :'zone'
  order by m.seq, a.attempt
) to stdout with (format csv, header)
\g choices.csv
