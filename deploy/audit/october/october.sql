-- The ledger of docs/auditor.md: October 2026, 3180 messages over three channels, without their
-- numbers and texts, which a dispatcher would have dropped by now. For an empty database that
-- "dispatcher migrate --roles" has prepared:
--
--   psql "$DISPATCHER_POSTGRES_URL" -v ON_ERROR_STOP=1 -f deploy/audit/october/october.sql
--
-- Everything follows from the ids of the messages, so it is the same each time. The draws were made
-- with the key in draw.key: "dispatcher audit verify" and replay.py make them again.
begin;

select dispatcher.make_day(dispatcher.day_at(timestamptz '2026-10-01 00:00Z') + n)
from generate_series(0, 30) n;

-- On the 19th b got a larger share.
insert into dispatcher.routing_versions (version, author, reason, created_at, base, document, routes)
select version, 'ann', reason, at, null, format($yaml$timezone: Europe/London
channels:
  a: {provider: sandbox, capacity: 500, price: {currency: GBP, default: "0.031"}}
  b:
    provider: sandbox
    capacity: 300
    price: {currency: GBP, default: "0.035"}
    contract: {unit: segments, commitment: 500}
  c: {provider: sandbox, capacity: 1000, price: {currency: GBP, default: "0.028"}}
routes:
  - {name: default, weights: {a: %s, b: %s, c: %s}, fallback: load_ratio}
$yaml$, a, b, c), jsonb_build_array(jsonb_build_object('route', 'default', 'mode', 'weighted',
    'fallback', 'load_ratio', 'lowest_first', false, 'members', array['a', 'b', 'c'],
    'weights', array[a, b, c]))
from (values (1, 'as agreed with all three', timestamptz '2026-09-28 09:00Z', '25', '15', '60'),
             (2, 'contract with b of 14 October', timestamptz '2026-10-19 04:00Z', '25', '20', '55'))
  v (version, reason, at, a, b, c);

-- The login is in the log of hashes, so it must be the same whoever loads this file.
update dispatcher.routing_versions set login = 'dispatcher';

-- HMAC-SHA-256 with the key of draw.key: the key is padded with zeros to 64 bytes, and each byte
-- changed by xor with 36 and with 5c.
create function pg_temp.hmac(data bytea) returns bytea language sql immutable
return sha256('\x333f28333e392e71333f28333e392e71333f28333e392e71333f28333e392e715c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c'
  || sha256('\x595542595453441b595542595453441b595542595453441b595542595453441b3636363636363636363636363636363636363636363636363636363636363636'
    || data));
-- Its first eight bytes, as a signed number.
create function pg_temp.hash(data bytea) returns bigint language sql immutable
return ('x' || encode(substring(pg_temp.hmac(data) from 1 for 8), 'hex'))::bit(64)::bigint;

-- 120 messages on each working day and 60 on others, from 8 in the morning to 8 in the evening.
create temporary table october on commit drop as
with planned as (
  select day, i, to_char(day, '"oct"DD-') || to_char(i, 'FM000') as id,
    (day + time '08:00' + i * interval '12 hours' / n) at time zone 'Europe/London' as received_at,
    case when day < '2026-10-19' then 1 else 2 end as version
  from generate_series(timestamp '2026-10-01', '2026-10-31', '1 day') day,
    lateral (select case when extract(isodow from day) < 6 then 120 else 60 end as n) working,
    generate_series(1, n) i
), drawn as (
  select *, div(case when hash < 0 then hash + 18446744073709551616::numeric else hash end * 100,
      18446744073709551616)::bigint as draw
  from (select *, pg_temp.hash(convert_to(id, 'UTF8') || '\x0000000001')::numeric as hash
    from planned) p
), chosen as (
  select *, case when draw < 25 then 'a' when draw < case version when 1 then 40 else 45 end then 'b'
      else 'c' end as first_choice,
    ('x' || substring(md5(id) from 1 for 6))::bit(24)::integer % 1000 as fate,
    case when ('x' || substring(md5(id) from 7 for 4))::bit(16)::integer % 10 = 0 then 2 else 1 end
      as segments
  from drawn
)
select dispatcher.first_of(dispatcher.day_at(received_at)) + i as seq, *,
  -- For five days b was down, and its messages went to c and a.
  case when not (first_choice = 'b' and day between '2026-10-12' and '2026-10-16') then first_choice
    when i % 3 = 0 then 'a' else 'c' end as channel,
  -- One submission got no answer, a few were refused as bad numbers.
  case when id = 'oct21-066' then 'unknown' when fate < 5 then 'rejected'
    when fate < 960 then 'delivered' when fate < 990 then 'undelivered' else 'no_receipt' end as state
from chosen;

insert into dispatcher.messages (seq, received_at, expires_at, kafka_partition, kafka_offset,
  number_hmac, envelope_hmac, routing_version, draw, draw_size, calling_code, segments, id, lane,
  tenant, topic, route, draw_key_id, first_choice, alphabet, attempts, state, reason, finished_at)
select seq, received_at, received_at + interval '1 day', 0,
  row_number() over (order by seq) - 1,
  pg_temp.hash('\x00' || convert_to('number', 'UTF8') || '\x00'
    || convert_to('+447700900' || to_char(i, 'FM000'), 'UTF8')),
  pg_temp.hash(convert_to('envelope of ' || id, 'UTF8')), version, draw, 100, 44, segments, id,
  'transactional', case when i % 3 = 0 then 'bank' else 'shop' end, 'sms.transactional', 'default',
  substring(encode(sha256(
    '\x6f63746f6265722d6f63746f6265722d6f63746f6265722d6f63746f6265722d'), 'hex') from 1 for 8),
  first_choice, 'gsm7', 1, state, case when state = 'unknown' then 'ambiguous_final' end,
  received_at + case state when 'rejected' then interval '200 ms' when 'unknown' then '1 minute'
    when 'no_receipt' then '1 hour' else '4 seconds' end
from october;

insert into dispatcher.attempts (message_seq, instance, claimed_at, price_micros, attempt, segments,
  channel, reason, currency, ranking, settled_at, answers, outcome, provider_reference,
  provider_code, receipt_state, receipt_at, delivered_at)
select seq, 0, received_at + interval '20 ms', billed * price, 1, billed, channel,
  case when channel = first_choice then 'first_choice' else 'fallback' end, 'GBP',
  case when channel <> first_choice then jsonb_build_object('version', 1, 'by', 'load_ratio',
    'latest', (extract(epoch from received_at) * 1000000)::bigint, 'line',
    'b 0/300 60000000 breaker_open,' || case channel when 'c' then 'c 0/1000 8000000,a 0/500 5000000'
      else 'a 0/500 8000000,c 0/1000 5000000' end) end,
  received_at + interval '200 ms', 1,
  case when state in ('unknown', 'rejected') then state else 'accepted' end,
  case when state not in ('unknown', 'rejected')
    then channel || '-' || substring(md5('reference of ' || id) from 1 for 8) end,
  case state when 'unknown' then 'timeout' when 'rejected' then '11' else '0' end,
  nullif(nullif(state, 'unknown'), 'rejected'),
  case when state in ('delivered', 'undelivered') then received_at + interval '4 seconds' end,
  case when state = 'delivered' then received_at + interval '4 seconds' end
from october, lateral (
  select case state when 'rejected' then 0 else segments end as billed,
    case channel when 'a' then 31000 when 'b' then 35000 else 28000 end as price) p;

insert into dispatcher.receipts (channel, reference, message_seq, attempt, part, state, received_at)
select channel, channel || '-' || substring(md5('reference of ' || id) from 1 for 8), seq, 1, 1, state,
  received_at + interval '4 seconds'
from october where state in ('delivered', 'undelivered');

insert into dispatcher.ambiguous (message_seq, key, attempt, last, step, opened_at, until, closed_at,
  verdict)
select seq, id, 1, 1, 'none', received_at, received_at, received_at + interval '1 minute', 'final'
from october where state = 'unknown';

select dispatcher.index_ids(dispatcher.day_at(timestamptz '2026-10-01 00:00Z') + n)
from generate_series(0, 30) n;
update dispatcher.days set payloads = false;

-- The days were closed, each at two minutes past one in the morning after it. The figures are what
-- "dispatcher report close" makes of the rows above.
create temporary table figures on commit drop as
select *, date_trunc('hour', received_at) as hour, (state not in ('unknown', 'rejected')) as accepted,
  case state when 'rejected' then 0 else segments end as billed,
  case channel when 'a' then 31000 when 'b' then 35000 else 28000 end as price
from october;

insert into dispatcher.choice_figures (day, revision, hour, routing_version, route, channel, tenant,
  calling_code, cause, messages, rejected, failed, unknown, open, segments)
select f.day, 1, f.hour, f.version, 'default', f.first_choice, m.tenant, 44,
  case f.state when 'rejected' then 'rejected' when 'unknown' then 'no_answer' else '' end, count(*),
  count(*) filter (where f.state = 'rejected'), 0, count(*) filter (where f.state = 'unknown'), 0,
  sum(f.segments)
from figures f join dispatcher.messages m using (seq) group by 1, 3, 4, 6, 7, 9;

insert into dispatcher.attempt_figures (day, revision, hour, routing_version, route, channel, reason,
  currency, tenant, calling_code, attempts, submitted, accepted, rejected, refused, throttled, unknown,
  unsent, pending, delivered, undelivered, no_receipt, segments, cost_micros, unknown_segments,
  unknown_micros, delivered_segments, delivered_micros)
select f.day, 1, f.hour, f.version, 'default', f.channel,
  case when f.channel = f.first_choice then 'first_choice' else 'fallback' end, 'GBP', m.tenant, 44,
  count(*), count(*), count(*) filter (where accepted), count(*) filter (where f.state = 'rejected'),
  0, 0, count(*) filter (where f.state = 'unknown'), 0, 0,
  count(*) filter (where f.state = 'delivered'), count(*) filter (where f.state = 'undelivered'),
  count(*) filter (where f.state = 'no_receipt'),
  coalesce(sum(billed) filter (where accepted), 0),
  coalesce(sum(billed * price) filter (where accepted), 0),
  coalesce(sum(billed) filter (where f.state = 'unknown'), 0),
  coalesce(sum(billed * price) filter (where f.state = 'unknown'), 0),
  coalesce(sum(billed) filter (where f.state = 'delivered'), 0),
  coalesce(sum(billed * price) filter (where f.state = 'delivered'), 0)
from figures f join dispatcher.messages m using (seq) group by 1, 3, 4, 6, 7, 9;

insert into dispatcher.carried_figures (day, revision, hour, routing_version, route, first_choice,
  channel, cause, tenant, calling_code, messages, currency, segments, cost_micros, text_segments)
select f.day, 1, f.hour, f.version, 'default', f.first_choice, f.channel,
  case when f.channel = f.first_choice then '' else 'breaker_open' end, m.tenant, 44, count(*), 'GBP',
  sum(billed), sum(billed * price), sum(f.segments)
from figures f join dispatcher.messages m using (seq) where accepted group by 1, 3, 4, 6, 7, 8, 9;

insert into dispatcher.closings (day, revision, zone, from_at, to_at, at, changes, figures)
select day, 1, 'Europe/London', day at time zone 'Europe/London',
  (day + interval '1 day') at time zone 'Europe/London',
  (day + interval '1 day 01:02') at time zone 'Europe/London',
  (select count(*) from dispatcher.choice_figures c where c.day = d.day)
  + (select count(*) from dispatcher.attempt_figures a where a.day = d.day)
  + (select count(*) from dispatcher.carried_figures c where c.day = d.day), 2
from (select distinct day from figures) d;
commit;
