package ledger

// Statements of a claim, in the order in which they are sent. An array parameter that
// is null stands for a column of nulls, and one of a single element for a column of
// that value (see brief): unnest pads both.

// insertMessages stores new messages in the order of the arrays, which is ascending by
// id, so that two claims that hold the same ids wait for each other and never in a
// circle. A row that is there already falls out of the answer.
const insertMessages = `
	insert into dispatcher.messages (id, lane, tenant, topic, kafka_partition, kafka_offset, envelope, digest,
	  state, reason, next_at, expires_at, attempts, finished_at,
	  route, routing_version, draw, draw_size, draw_key_id, first_choice, segments, alphabet)
	select n.id, coalesce(n.lane, ($2::text[])[1]), coalesce(n.tenant, ($3::text[])[1]), coalesce(n.topic, ($4::text[])[1]),
	  n.kafka_partition, n.kafka_offset, n.envelope, n.digest,
	  s.state, nullif(n.reason, ''), n.next_at, n.expires_at, case s.state when 'sending' then 1 else 0 end,
	  case when s.state in ('dead', 'failed', 'rejected') then now() end,
	  nullif(coalesce(n.route, ($13::text[])[1]), ''), nullif(coalesce(n.version, ($14::bigint[])[1]), 0),
	  case when s.size > 0 then n.draw end, nullif(s.size, 0),
	  nullif(coalesce(n.key_id, ($17::text[])[1]), ''), nullif(n.first_choice, ''),
	  nullif(coalesce(n.segments, ($19::smallint[])[1]), 0), nullif(coalesce(n.alphabet, ($20::text[])[1]), '')
	from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int[], $6::bigint[], $7::bytea[], $8::bigint[],
	  $9::text[], $10::text[], $11::timestamptz[], $12::timestamptz[],
	  $13::text[], $14::bigint[], $15::bigint[], $16::bigint[], $17::text[], $18::text[], $19::smallint[], $20::text[])
	  as n(id, lane, tenant, topic, kafka_partition, kafka_offset, envelope, digest,
	    state, reason, next_at, expires_at, route, version, draw, size, key_id, first_choice, segments, alphabet),
	  lateral (select coalesce(n.state, ($9::text[])[1]) as state, coalesce(n.size, ($16::bigint[])[1]) as size) s
	on conflict (id) do nothing
	returning seq, id`

// selectDue picks up rows whose time has come. now() is the transaction's start and,
// unlike the clock, lets the index on next_at answer.
const selectDue = `
	select ` + messageColumns + ` from dispatcher.messages m
	where m.next_at <= now() and m.seq <> all($2::bigint[]) order by m.next_at limit $1 for update skip locked`

// lockChannels and lockLimits read the shared state under lock. Limits are read by a
// statement of their own, which sees what the last holder of the channels committed.
const lockChannels = `
	select channel, active_max, active, last_assigned from dispatcher.channels
	where channel = any($1) and removed_at is null
	order by channel for update`

const lockLimits = `
	select channel, window_seconds, unit, configured_max, max, window_start, granted from dispatcher.limits
	where channel = any($1) and scope = 'channel'
	order by channel, scope, window_seconds, unit for update`

// lockCursors comes after the limits in the order of locks.
const lockCursors = `
	select route, channel, position from dispatcher.cursors
	where route = any($1) order by route for update`

// readPresent comes after all locks, so that the clock is past every grant that was
// seen and the version is not older than the counters. The transaction's id settles
// what became of a commit whose answer was lost.
const readPresent = `
	select clock_timestamp(), now(), pg_current_xact_id()::text::bigint,
	  coalesce((select max(version) from dispatcher.routing_versions), 0),
	  (select last_seen from dispatcher.instances where id = $1)`

// selectDigests tells duplicates from conflicts.
const selectDigests = `select id, digest from dispatcher.messages where id = any($1)`

const insertAttempts = `
	insert into dispatcher.attempts (message_seq, attempt, channel, reason, segments, price_micros, currency, ranking,
	  claimed_at, instance)
	select n.seq, coalesce(n.attempt, ($2::smallint[])[1]), coalesce(n.channel, ($3::text[])[1]), coalesce(n.reason, ($4::text[])[1]),
	  coalesce(n.segments, ($5::smallint[])[1]), coalesce(n.price_micros, ($6::bigint[])[1]), coalesce(n.currency, ($7::text[])[1]),
	  nullif(n.ranking, '')::jsonb, $9, $10
	from unnest($1::bigint[], $2::smallint[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::text[], $8::text[])
	  as n(seq, attempt, channel, reason, segments, price_micros, currency, ranking)`

// updateMessages writes decisions that differ from what the row holds. A version of 0
// keeps the row's plan; without a new state that was seen, the last one is kept for explain.
const updateMessages = `
	update dispatcher.messages m set
	  state = n.state, reason = nullif(n.reason, ''), next_at = n.next_at, attempts = n.attempts,
	  finished_at = case when n.state in ('failed', 'rejected') then $16::timestamptz end,
	  tried = case when n.new_round then null else m.tried end,
	  rounds = m.rounds + n.new_round::int,
	  seen = coalesce(nullif(n.seen, '')::jsonb, m.seen),
	  route           = case when n.version > 0 then nullif(n.route, '') else m.route end,
	  routing_version = case when n.version > 0 then n.version else m.routing_version end,
	  draw            = case when n.version > 0 then case when n.size > 0 then n.draw end else m.draw end,
	  draw_size       = case when n.version > 0 then nullif(n.size, 0) else m.draw_size end,
	  draw_key_id     = case when n.version > 0 then nullif(n.key_id, '') else m.draw_key_id end,
	  first_choice    = case when n.version > 0 then nullif(n.first_choice, '') else m.first_choice end,
	  segments        = case when n.version > 0 then nullif(n.segments, 0) else m.segments end,
	  alphabet        = case when n.version > 0 then nullif(n.alphabet, '') else m.alphabet end
	from unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[], $5::smallint[], $6::boolean[], $7::text[],
	  $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::smallint[], $15::text[])
	  as n(seq, state, reason, next_at, attempts, new_round, seen,
	    route, version, draw, size, key_id, first_choice, segments, alphabet)
	where m.seq = n.seq`

const updateLimits = `
	update dispatcher.limits l set granted = n.granted, max = n.max, window_start = n.window_start
	from unnest($1::text[], $2::int[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[])
	  as n(channel, window_seconds, unit, granted, max, window_start)
	where l.channel = n.channel and l.scope = 'channel' and l.window_seconds = n.window_seconds and l.unit = n.unit`

const insertHistory = `
	insert into dispatcher.limit_history (channel, scope, window_seconds, unit, granted, max, window_start)
	select n.channel, 'channel', n.window_seconds, n.unit, n.granted, n.max, n.window_start
	from unnest($1::text[], $2::int[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[])
	  as n(channel, window_seconds, unit, granted, max, window_start)`

const updateChannels = `
	update dispatcher.channels c set active = n.active, last_assigned = n.last_assigned
	from unnest($1::text[], $2::bigint[], $3::timestamptz[]) as n(channel, active, last_assigned)
	where c.channel = n.channel`

const updateCursors = `
	update dispatcher.cursors c set channel = n.channel, position = n.position
	from unnest($1::text[], $2::text[], $3::int[]) as n(route, channel, position)
	where c.route = n.route`

const insertOutbox = `insert into dispatcher.outbox (kind, keys, "values", headers) values ($1, $2, $3, $4)`
