package ledger

import (
	"slices"
	"strings"
)

// Statements of a claim, in the order in which they are sent. An array parameter that is null means
// null in every row, and one of a single element means that value in every row (see brief), because
// unnest pads both with nulls. Each list of names is in the order in which its function returns the
// parameters.

// planNames are the parameters from planArrays.
var planNames = []string{
	"routes", "versions", "draws", "draw_sizes", "key_ids", "first_choices", "segments",
	"alphabets",
}

// insertIDs stores the ids of new messages and gives them numbers of a day, which rise through the
// day. $2 is what a value of the sequence is added to: the first number of the day, less the value
// from which the day counts. The ids ascend, so that two claims with the same ids wait for each
// other without a deadlock. An id that exists already, in this table or in the older one, is not
// returned. When another claim stores the same id meanwhile, the statement fails, see isDuplicate.
//
// insertIDsAgain has "on conflict" and does not fail then. With it PostgreSQL writes one more WAL
// record of 48 bytes for each row, so it is used only after insertIDs has failed.
var (
	insertIDs = bothTurns(`
	insert into dispatcher.ids_0 as i (id, seq)
	select n.id, $2::bigint + nextval('dispatcher.message_numbers') from unnest($1::text[]) as n(id)
	where not exists (select from dispatcher.ids_0 c where c.id = n.id offset 0)
	  and not exists (select from dispatcher.ids_1 o where o.id = n.id offset 0)
	returning seq, id`)

	insertIDsAgain = bothTurns(`
	insert into dispatcher.ids_0 as i (id, seq)
	select n.id, $2::bigint + nextval('dispatcher.message_numbers') from unnest($1::text[]) as n(id)
	where not exists (select from dispatcher.ids_0 c where c.id = n.id offset 0)
	  and not exists (select from dispatcher.ids_1 o where o.id = n.id offset 0)
	on conflict (id) do nothing
	returning seq, id`)
)

// bothTurns returns a statement twice: for even turns of the tables of ids as it is written, and
// for odd ones with the names of the tables exchanged.
func bothTurns(sql string) [2]string {
	return [2]string{sql, strings.NewReplacer("ids_0", "ids_1", "ids_1", "ids_0").Replace(sql)}
}

// selectOptedOut are the positions of recipients that have opted out. It and selectDue read the
// list as of their beginning, so a claim that begins after an opt-out was committed sees it.
//
// While the list is empty, one check for the whole statement finds that, and nothing is looked up.
// Otherwise each row costs one lookup in the index of the current entries. The planner never turns
// a correlated scalar subquery into a hash of the whole list.
const selectOptedOut = `
	select n.nr from unnest($1::bigint[]) with ordinality as n(recipient, nr)
	where case when (select exists (select from dispatcher.opt_outs where until is null))
	  then coalesce((select true from dispatcher.opt_outs o
	    where o.recipient = n.recipient and o.until is null), false)
	  else false end`

// lockChannels, and lockLimits or lockScopes, lock and read the shared state. Freed slots and
// limits are read by separate statements, so that they see what the last holder of the channels
// committed. statement_timestamp is when the claim began to wait.
const lockChannels = `
	select channel, configured_max, active, last_assigned, ease_rate, ease_since, ease_until, freed,
	  statement_timestamp()
	from dispatcher.channels
	where channel = any($1) and removed_at is null
	order by channel for update`

// selectFreed reads how many slots of the locked channels were given back. What commits later is
// subtracted by a later claim.
const selectFreed = `select channel, slots from dispatcher.freed_slots where channel = any($1)`

const lockLimits = `
	select l.channel, l.scope, l.window_seconds, l.unit, coalesce(l.currency, ''), l.configured_max,
	  l.max, l.window_start, l.granted, l.next_at, coalesce(l.pace, 0), coalesce(l.taken::text, '')
	from dispatcher.limits l
	where l.channel = any($1) and l.scope = 'channel'
	order by l.channel, l.scope, l.window_seconds, l.unit for update`

// lockScopes locks the limits of channels together with narrower ones, in the same order. It looks
// up each pair, so that other limits cost nothing.
const lockScopes = `
	select l.channel, l.scope, l.window_seconds, l.unit, coalesce(l.currency, ''), l.configured_max,
	  l.max, l.window_start, l.granted, l.next_at, coalesce(l.pace, 0), coalesce(l.taken::text, '')
	from unnest($1::text[], $2::text[]) as n(channel, scope)
	join dispatcher.limits l on l.channel = n.channel and l.scope = n.scope
	order by l.channel, l.scope, l.window_seconds, l.unit for update of l`

// lockCursors runs after the limits are locked, as in the lock order.
const lockCursors = `
	select route, channel, position from dispatcher.cursors
	where route = any($1) order by route for update`

// selectDue picks up due rows, see dispatcher.due_messages.
const selectDue = `
	select ` + messageColumns + `, d.envelope, d.accepted_at, d.claimed_at,
	  case when (select exists (select from dispatcher.opt_outs where until is null))
	    then coalesce((select true from dispatcher.opt_outs o
	      where o.recipient = d.recipient and o.until is null), false)
	    else false end,
	  d.maybe_taken, d.taken_at, coalesce(d.receipt_came, false)
	from dispatcher.due_messages($1, $2, $3, $4) d, lateral (select (d.message).*) m`

// readPresent runs after all locks. So the clock is later than every grant that was read, and the
// version is not older than the counters. The turn is the one under which the new ids were stored,
// because it cannot change while a claim holds locks on the tables of ids. When the answer to the
// commit is lost, the transaction's id is used to find out whether it succeeded.
const readPresent = `
	select clock_timestamp(), now(), pg_current_xact_id()::text::bigint,
	  coalesce((select max(version) from dispatcher.routing_versions), 0),
	  (select last_seen from dispatcher.instances where id = $1),
	  (select turn from dispatcher.id_turns),
	  exists (select from dispatcher.pending_cancellations)`

// selectDigests reads the digests that distinguish duplicates from conflicts.
const selectDigests = `select id, digest from dispatcher.digests($1)`

// freeAttempts takes the slots from attempts whose ticket the next attempt uses, or whose message
// is not sent again. selectDue has locked them.
var freeAttempts = ofDay(`
	update dispatcher.attempts a set freed = true
	from unnest($1::bigint[], $2::smallint[]) as n(seq, attempt)
	where a.message_seq = n.seq and a.attempt = n.attempt`)

// changeNames are the parameters from changeArrays.
var changeNames = slices.Concat(
	[]string{"seqs", "states", "reasons", "next_ats", "attempts", "new_rounds", "seen"},
	planNames,
	[]string{"now", "waits_for", "waits"},
)

// updateMessages writes decisions about due messages. A version of 0 keeps the row's plan. An empty
// seen keeps the state of the last wait, for explanations.
var updateMessages = ofDay(named(changeNames, `
	update dispatcher.messages m set
	  state = n.state, reason = nullif(n.reason, ''), next_at = n.next_at, attempts = n.attempts,
	  finished_at = case when n.state in ('failed', 'rejected', 'unknown')
	    then @now::timestamptz end,
	  tried = case when n.new_round then null else m.tried end,
	  rounds = m.rounds + n.new_round::int,
	  seen = coalesce(nullif(n.seen, '')::jsonb, m.seen),
	  waiting_since = case when n.state = 'waiting' then @now end,
	  waits_for = nullif(n.waits_for, ''),
	  waits = coalesce(nullif(n.waits, '')::jsonb, m.waits),
	  route           = case when n.version > 0 then nullif(n.route, '') else m.route end,
	  routing_version = case when n.version > 0 then n.version else m.routing_version end,
	  draw            = case when n.version > 0 then case when n.size > 0 then n.draw end
	    else m.draw end,
	  draw_size       = case when n.version > 0 then nullif(n.size, 0) else m.draw_size end,
	  draw_key_id     = case when n.version > 0 then nullif(n.key_id, '') else m.draw_key_id end,
	  first_choice    = case when n.version > 0 then nullif(n.first_choice, '')
	    else m.first_choice end,
	  segments        = case when n.version > 0 then nullif(n.segments, 0) else m.segments end,
	  alphabet        = case when n.version > 0 then nullif(n.alphabet, '') else m.alphabet end
	from unnest(@seqs::bigint[], @states::text[], @reasons::text[], @next_ats::timestamptz[],
	  @attempts::smallint[], @new_rounds::boolean[], @seen::text[], @routes::text[],
	  @versions::bigint[], @draws::bigint[], @draw_sizes::bigint[], @key_ids::text[],
	  @first_choices::text[], @segments::smallint[], @alphabets::text[], @waits_for::text[],
	  @waits::text[])
	  as n(seq, state, reason, next_at, attempts, new_round, seen, route, version, draw, size,
	    key_id, first_choice, segments, alphabet, waits_for, waits)
	where m.seq = n.seq`))

// limitNames are the parameters from counterArrays.
var limitNames = []string{
	"channels", "scopes", "windows", "units", "granted", "maxes", "starts", "reserved", "next_ats",
	"paces", "tallies", "currencies",
}

var updateLimits = named(limitNames, `
	update dispatcher.limits l set granted = n.granted, max = n.max, window_start = n.window_start,
	  reserved = n.reserved, next_at = n.next_at, pace = nullif(n.pace, 0),
	  taken = nullif(n.taken, '')::jsonb
	from unnest(@channels::text[], @scopes::text[], @windows::int[], @units::text[],
	    @granted::bigint[], @maxes::bigint[], @starts::timestamptz[], @reserved::bigint[],
	    @next_ats::timestamptz[], @paces::bigint[], @tallies::text[], @currencies::text[])
	  as n(channel, scope, window_seconds, unit, granted, max, window_start, reserved, next_at,
	    pace, taken, currency)
	where l.channel = n.channel and l.scope = n.scope and l.window_seconds = n.window_seconds
	  and l.unit = n.unit`)

var insertHistory = named(limitNames, `
	insert into dispatcher.limit_history (channel, scope, window_seconds, unit, granted, max,
	  window_start, reserved, currency, since)
	select n.channel, n.scope, n.window_seconds, n.unit, n.granted, n.max, n.window_start,
	  n.reserved, nullif(n.currency, ''), l.since
	from unnest(@channels::text[], @scopes::text[], @windows::int[], @units::text[],
	    @granted::bigint[], @maxes::bigint[], @starts::timestamptz[], @reserved::bigint[],
	    @next_ats::timestamptz[], @paces::bigint[], @tallies::text[], @currencies::text[])
	  as n(channel, scope, window_seconds, unit, granted, max, window_start, reserved, next_at,
	    pace, taken, currency)
	left join dispatcher.limits l using (channel, scope, window_seconds, unit)`)

// updateChannels also lets active_max fall with active when it was lowered below active.
const updateChannels = `
	update dispatcher.channels c set active = n.active, freed = n.freed,
	  active_max = case when c.configured_max = 0 then 0
	    else greatest(c.configured_max, least(c.active_max, n.active)) end,
	  last_assigned = n.last_assigned
	from unnest($1::text[], $2::bigint[], $3::bigint[], $4::timestamptz[])
	  as n(channel, active, freed, last_assigned)
	where c.channel = n.channel`

const updateCursors = `
	update dispatcher.cursors c set channel = n.channel, position = n.position
	from unnest($1::text[], $2::text[], $3::int[]) as n(route, channel, position)
	where c.route = n.route`

const insertOutbox = `
	insert into dispatcher.outbox (kind, keys, "values", headers) values ($1, $2, $3, $4)`
