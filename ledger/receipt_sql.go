package ledger

// Statements of receipts. Their lock order is receipts, attempts, messages, channels. A settlement
// that expects receipts locks their rows first, too.
//
// Overdue finds a row with due_at in one of two ways: its look_at is the same time, or a row of
// awaited with that time lists its message. Every statement that writes due_at must write one of
// the two.

// expectReceipts creates the rows of the parts that a settlement expects receipts for, before the
// settlement itself. A row with that reference may exist already:
//
//   - It is an early receipt, or one with our key. The statement completes it. When it is final,
//     the row is due at once, for the settlement did not know of it; otherwise its time begins now.
//   - It belongs to this settlement, which was made before, or to an earlier attempt under the same
//     key. When its time ended while the attempt was unknown, its time begins again.
//   - It belongs to another message, because the provider used the id again. When its time is over,
//     the newer message takes the row, unless its attempt already has an answer that does not name
//     the id. Otherwise the older one keeps the row, and the newer one gets a row that no receipt
//     can match, so that it ends without a receipt. The triggers receipts_legal and
//     receipts_taken_over refuse anything else.
//
// Part 0 is an id that the answer named for a part that it denied, so no receipt should come. Its
// row looks as if a receipt with our key had made it. It does not take over an existing row, and a
// later message that the provider accepts under the same id takes its row at once. When its time is
// over the row is deleted, see drop: a provider that uses ids again may send later receipts for
// other messages.
//
// The channel is read from the attempt, which must exist. Rows are written in the order of their
// key, as in mergeReceipts.
//
// Usually all rows are new. Then they are inserted plainly, because "on conflict" writes 48 more
// bytes of WAL for each. When another transaction inserts the same row meanwhile, that fails, see
// isDuplicate. The statement is then sent again with $6 set, which merges the rows.
var expectReceipts = ofDay(`
	with fresh as materialized (
	  select distinct on (a.channel, n.reference, n.seq, n.attempt) a.channel, n.reference, n.seq,
	    n.attempt, nullif(n.part, 0) as part,
	    now() + n.await * interval '1 microsecond' as due_at,
	    exists (select from dispatcher.receipts r
	      where r.channel = a.channel and r.reference = n.reference offset 0) as known
	  from (select seq, attempt, reference collate "C" as reference, part, await
	    from unnest($1::bigint[], $2::smallint[], $3::text[], $4::smallint[], $5::bigint[])
	      as u(seq, attempt, reference, part, await)) n
	  join dispatcher.attempts a on a.message_seq = n.seq and a.attempt = n.attempt
	  order by a.channel, n.reference, n.seq, n.attempt, nullif(n.part, 0)
	), merging as materialized (
	  select $6::boolean or bool_or(known) or count(*) > count(distinct channel || ' ' || reference) as yes
	  from fresh
	), awaited as (
	  insert into dispatcher.awaited (due_at, seqs)
	  select due_at, array_agg(distinct seq) from fresh group by due_at
	), added as (
	  insert into dispatcher.receipts (channel, reference, message_seq, attempt, part, due_at)
	  select channel, reference, seq, attempt, part, due_at from fresh
	  where not (select yes from merging) order by channel, reference
	), recorded as (
	  insert into dispatcher.receipts as r (channel, reference, message_seq, attempt, part, due_at)
	  select distinct on (channel, reference) channel, reference, seq, attempt, part, due_at
	  from fresh where (select yes from merging) order by channel, reference, part is null, seq
	  on conflict (channel, reference) do update set message_seq = excluded.message_seq,
	    attempt = excluded.attempt, part = excluded.part,
	    state = case when r.message_seq is null or r.message_seq = excluded.message_seq
	      then r.state else 'expected' end,
	    cause = case when r.message_seq is null or r.message_seq = excluded.message_seq
	      then r.cause end,
	    code = case when r.message_seq is null or r.message_seq = excluded.message_seq
	      then r.code end,
	    received_at = case when r.message_seq is null or r.message_seq = excluded.message_seq
	      then r.received_at end,
	    due_at = case when (r.message_seq is null or r.message_seq = excluded.message_seq)
	      and r.state in ('delivered', 'undelivered')
	      then now() when r.part is null then excluded.due_at
	        else coalesce(r.due_at, excluded.due_at) end,
	    look_at = case when (r.message_seq is null or r.message_seq = excluded.message_seq)
	      and r.state in ('delivered', 'undelivered')
	      then now() when r.part is not null then r.look_at end
	  where r.message_seq is null or (excluded.part is not null or r.part is null)
	    and r.message_seq = excluded.message_seq and r.attempt <= excluded.attempt
	    or excluded.part is not null and (r.due_at is null or r.part is null
	      and r.state in ('expected', 'pending'))
	      and exists (select from dispatcher.attempts a where a.message_seq = excluded.message_seq
	        and a.attempt = excluded.attempt and (coalesce(a.outcome, 'unknown') = 'unknown'
	          or r.reference = any(string_to_array(a.provider_reference, ' '))))
	  returning message_seq, attempt, reference
	)
	insert into dispatcher.receipts as r (channel, reference, message_seq, attempt, part, due_at)
	select f.channel, f.reference || ' ' || f.seq || '.' || f.attempt, f.seq, f.attempt, f.part,
	  f.due_at
	from fresh f
	where (select yes from merging)
	  and (select count(*) from recorded) < (select count(*) from fresh) and f.part is not null
	  and (f.seq, f.attempt, f.reference) not in (select message_seq, attempt, reference
	    from recorded)
	order by f.channel, f.reference, f.seq, f.attempt
	on conflict (channel, reference) do update set due_at = excluded.due_at where r.due_at is null`)

// mergeReceipts merges receipts into their rows. It returns
//
//   - the receipts that carry the key of one message and the reference of another;
//   - the rows that it has locked;
//   - the rows that changed, with their message, 0 for none, and whether a final receipt came for a
//     row that a key or a denial made.
//
// A row is replaced only by a receipt of higher rank, so that neither order nor repetition matters.
// A row without a message gets it from a key of any rank. A receipt without a reference is about
// the reference of its attempt. While there is none, or when there are several, it has a row of its
// own: see namedAttempts. A final receipt ends the wait of its row.
//
// The first message that a reference is known to belong to keeps it. A receipt whose key names
// another message contradicts that, and changes nothing. first is the message that the first key in
// this batch names, see receiptArrays.share. A receipt whose message is not known is kept only if
// it is final. A pending one would say nothing, and may even be forged where a provider does not
// sign its receipts.
//
// Usually all receipts are about existing rows. Then these are updated plainly, because "on
// conflict" locks each row first, which writes 54 more bytes of WAL. They are updated in the order
// of met: "= any" leaves the planner no other join than looking each row up. A row that was deleted
// or moved meanwhile, because its time was over, needs no receipt. Both parts, moved and recorded,
// merge by the same rule.
const mergeReceipts = `
	with given as (
	  select g.channel collate "C" as channel, g.reference collate "C" as reference,
	    nullif(g.seq, 0) as named, nullif(g.first, 0) as first, nullif(g.attempt, 0) as attempt,
	    g.state, nullif(g.cause, '') as cause, nullif(g.code, '') as code,
	    now() - g.ago * interval '1 microsecond' as received_at, r.channel is not null as known,
	    coalesce(r.message_seq, nullif(g.first, 0)) as holder
	  from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::smallint[], $6::text[],
	    $7::text[], $8::text[], $9::bigint[])
	    as g(channel, reference, seq, first, attempt, state, cause, code, ago)
	  left join dispatcher.receipts r on r.reference = g.reference and r.channel = g.channel
	  where g.reference <> ''
	), met as materialized (
	  select distinct on (channel, reference) channel, reference,
	    case when holder = first then first end as message_seq,
	    case when holder = first then attempt end as attempt, state, cause, code, received_at, known
	  from given
	  where coalesce(named = holder, true)
	    and (state <> 'pending' or known or first is not null)
	  order by channel, reference, dispatcher.receipt_rank(state) desc, received_at
	), moved as (
	  update dispatcher.receipts r set
	    state = case when dispatcher.receipt_rank(g.state) > dispatcher.receipt_rank(r.state)
	      then g.state else r.state end,
	    cause = case when dispatcher.receipt_rank(g.state) > dispatcher.receipt_rank(r.state)
	      then g.cause else r.cause end,
	    code = case when dispatcher.receipt_rank(g.state) > dispatcher.receipt_rank(r.state)
	      then g.code else r.code end,
	    received_at = case when dispatcher.receipt_rank(g.state) > dispatcher.receipt_rank(r.state)
	      then g.received_at else r.received_at end,
	    message_seq = coalesce(r.message_seq, g.message_seq),
	    attempt = coalesce(r.attempt, g.attempt),
	    due_at = case when g.state = 'pending' then r.due_at end,
	    look_at = case when g.state = 'pending' then r.look_at end
	  from met g
	  where (select bool_and(known) from met)
	    and r.channel = any(array[g.channel]) and r.reference = any(array[g.reference])
	    and (dispatcher.receipt_rank(g.state) > dispatcher.receipt_rank(r.state)
	      or r.message_seq is null and g.message_seq is not null)
	    and coalesce(r.message_seq = g.message_seq, true)
	  returning r.channel, r.reference, r.message_seq, r.part, r.state
	), recorded as (
	  insert into dispatcher.receipts as r (channel, reference, message_seq, attempt, state, cause,
	    code, received_at)
	  select channel, reference, message_seq, attempt, state, cause, code, received_at from met
	  where not (select bool_and(known) from met)
	  order by channel, reference
	  on conflict (channel, reference) do update set
	    state = case when dispatcher.receipt_rank(excluded.state) > dispatcher.receipt_rank(r.state)
	      then excluded.state else r.state end,
	    cause = case when dispatcher.receipt_rank(excluded.state) > dispatcher.receipt_rank(r.state)
	      then excluded.cause else r.cause end,
	    code = case when dispatcher.receipt_rank(excluded.state) > dispatcher.receipt_rank(r.state)
	      then excluded.code else r.code end,
	    received_at = case
	      when dispatcher.receipt_rank(excluded.state) > dispatcher.receipt_rank(r.state)
	      then excluded.received_at else r.received_at end,
	    message_seq = coalesce(r.message_seq, excluded.message_seq),
	    attempt = coalesce(r.attempt, excluded.attempt),
	    due_at = case when excluded.state = 'pending' then r.due_at end,
	    look_at = case when excluded.state = 'pending' then r.look_at end
	  where (dispatcher.receipt_rank(excluded.state) > dispatcher.receipt_rank(r.state)
	      or r.message_seq is null and excluded.message_seq is not null)
	    and coalesce(r.message_seq = excluded.message_seq, true)
	  returning channel, reference, message_seq, part, state
	), changed as (
	  select * from moved union all select * from recorded
	), locked as (
	  select channel, reference from moved union all
	  select channel, reference from met where not (select bool_and(known) from met)
	)
	select (select array_agg(channel) from given where named <> holder),
	  (select array_agg(split_part(reference, ' ', 1)) from given where named <> holder),
	  (select array_agg(channel) from locked), (select array_agg(reference) from locked),
	  array_agg(channel), array_agg(reference), array_agg(coalesce(message_seq, 0)),
	  array_agg(message_seq is not null and part is null and state <> 'pending')
	from changed`

// namedAttempts finds the attempts that receipts name by our key. nr is the position of the
// receipt.
const namedAttempts = `select nr, reference from dispatcher.named_attempts($1, $2, $3)`

// selectAffected are the messages of some rows of receipts.
const selectAffected = `
	select array_agg(distinct r.message_seq)
	from unnest($1::text[], $2::text[]) as g(channel, reference)
	join dispatcher.receipts r on r.channel = g.channel and r.reference = g.reference
	where r.message_seq is not null`

// lockAttemptRows locks all attempts of some messages. readMessageRows then reads the messages, and
// readParts the rows of their parts, in separate statements, so that they see what the last holder
// of the locks committed. For plain messages no lock is needed: their only attempt was accepted and
// tells their state, and every change of such a message locks that attempt first. The others are
// locked by lockMessageRows, and they and their parts are read again.
//
// Receipts of an attempt whose settlement said nothing about them are awaited for $2, which is
// UnsaidAwait, see receiptStatus.answered. The last column but two is attemptStatus.laterUnderKey:
// while an attempt repeats another under its key, the row of the message holds that key.
var (
	lockAttemptRows = ofDay(`
	select a.message_seq, a.attempt, a.channel, coalesce(a.outcome, ''),
	  coalesce(a.provider_reference, ''), a.held_until is not null, a.freed,
	  coalesce(a.receipt_state, ''), coalesce(a.receipts_owed, 0), coalesce(a.cut_short, false),
	    coalesce(a.proved, false),
	  a.segments, coalesce(a.denied_parts, 0), a.contradicted_at is not null, w.within,
	    coalesce(a.settled_at + w.within - now(), interval '0'),
	  case when a.outcome in ('refused', 'throttled', 'rejected') then coalesce((
	    select max(case when m.same_key = d.key then m.attempts else d.last end)
	    from dispatcher.ambiguous d join dispatcher.messages m on m.seq = d.message_seq
	    where d.message_seq = a.message_seq and a.attempt between d.attempt and d.last), 0)
	      else 0 end,
	  a.reason = 'resend', a.reason = 'no_receipt'
	from dispatcher.attempts a
	cross join lateral (select coalesce(a.receipts_within,
	  case when a.receipts_owed is null then $2::interval else '0' end) as within) w
	where a.message_seq = any($1)
	order by a.message_seq, a.attempt for update of a`)

	readMessageRows = ofDay(`
	select ` + statusColumns + ` from dispatcher.messages m where m.seq = any($1) order by m.seq`)

	lockMessageRows = ofDay(`
	select ` + statusColumns + ` from dispatcher.messages m where m.seq = any($1)
	order by m.seq for update of m`)
)

// statusColumns are the columns of message m that readStatuses scans.
const statusColumns = `m.seq, m.id, m.lane, m.tenant, coalesce(m.route, ''),
	coalesce(m.segments, 0), m.possible_duplicate,
	(select p.envelope from dispatcher.payloads p where p.seq = m.seq), m.attempts,
	m.state = 'accepted' and m.next_at is not null, now(), m.state`

const readParts = `
	select r.message_seq, r.attempt, r.channel, r.reference, r.part is null, r.state,
	  coalesce(r.cause, ''), coalesce(r.code, ''), r.received_at,
	  r.due_at is not null, coalesce(r.due_at > now(), false)
	from dispatcher.receipts r where r.message_seq = any($1)
	order by r.message_seq, r.attempt, r.part, r.channel, r.reference`

// selectMoved are those of some messages whose receipts have moved. It is sent for old messages
// only.
const selectMoved = `
	select array_agg(g.seq) from unnest($1::bigint[]) as g(seq)
	where exists (select from dispatcher.past_receipts p where p.message_seq = g.seq offset 0)`

// fallDue takes rows of awaited that are due and returns how many. It sets look_at of the rows of
// receipts that have been due since then, so that pickDue finds them. It skips locked rows of
// awaited. It waits for locked rows of receipts, because nothing else would set their look_at. The
// rows that no receipt can match come last, as in expectReceipts: they have a space in their
// reference.
const fallDue = `
	with come as (
	  delete from dispatcher.awaited where ctid = any(array(
	    select ctid from dispatcher.awaited where due_at <= now()
	    order by due_at limit $1 for update skip locked))
	  returning seqs
	), late as materialized (
	  select r.channel, r.reference from dispatcher.receipts r
	  where r.message_seq = any(array(select unnest(seqs) from come))
	    and r.due_at <= now() and r.look_at is null
	  order by strpos(r.reference, ' ') > 1, r.channel, r.reference for update
	), looked as (
	  update dispatcher.receipts r set look_at = r.due_at from late n
	  where r.channel = n.channel and r.reference = n.reference
	)
	select count(*) from come`

// pickDue locks and returns the rows whose look_at has come. It skips locked rows.
const pickDue = `
	select channel, reference, message_seq from dispatcher.receipts
	where look_at <= now() order by look_at limit $1 for update skip locked`

// attemptRowNames are the parameters from receiptWrites.tries, see queue.
var attemptRowNames = []string{
	"seqs", "attempts", "accepted", "references", "states", "causes", "codes", "ats", "freed",
	"contradicted_ats",
}

var updateAttemptRows = ofDay(named(attemptRowNames, `
	update dispatcher.attempts a set
	  outcome = case when n.accepted then 'accepted' else a.outcome end,
	  answers = a.answers + n.accepted::int,
	  proved = case when n.accepted then true else a.proved end,
	  settled_at = case when n.accepted then now() else a.settled_at end,
	  provider_reference = coalesce(nullif(n.reference, ''), a.provider_reference),
	  receipt_state = coalesce(nullif(n.state, ''), a.receipt_state),
	  receipt_cause = case when n.state = '' then a.receipt_cause else nullif(n.cause, '') end,
	  receipt_code = case when n.state = '' then a.receipt_code else nullif(n.code, '') end,
	  receipt_at = case when n.state = '' then a.receipt_at else n.at end,
	  delivered_at = case when n.state = 'delivered' then n.at else a.delivered_at end,
	  freed = a.freed or n.freed, contradicted_at = coalesce(a.contradicted_at, n.contradicted_at)
	from unnest(@seqs::bigint[], @attempts::smallint[], @accepted::boolean[], @references::text[],
	  @states::text[], @causes::text[], @codes::text[], @ats::timestamptz[], @freed::boolean[],
	  @contradicted_ats::timestamptz[])
	  as n(seq, attempt, accepted, reference, state, cause, code, at, freed, contradicted_at)
	where a.message_seq = n.seq and a.attempt = n.attempt`))

// receivedNames are the parameters of updateReceived, see queue.
var receivedNames = []string{"seqs", "attempts", "states", "causes", "codes", "ats", "freed"}

// updateReceived is updateAttemptRows for receipts that change nothing of what the provider
// answered, which is the usual case. Its columns have no trigger that compares answers.
var updateReceived = ofDay(named(receivedNames, `
	update dispatcher.attempts a set
	  receipt_state = coalesce(nullif(n.state, ''), a.receipt_state),
	  receipt_cause = case when n.state = '' then a.receipt_cause
	    else nullif(coalesce(n.cause, (@causes::text[])[1]), '') end,
	  receipt_code = case when n.state = '' then a.receipt_code
	    else nullif(coalesce(n.code, (@codes::text[])[1]), '') end,
	  receipt_at = case when n.state = '' then a.receipt_at else n.at end,
	  delivered_at = case when n.state = 'delivered' then n.at else a.delivered_at end,
	  freed = a.freed or coalesce(n.freed, (@freed::boolean[])[1])
	from unnest(@seqs::bigint[], @attempts::smallint[], @states::text[], @causes::text[],
	  @codes::text[], @ats::timestamptz[], @freed::boolean[])
	  as n(seq, attempt, state, cause, code, at, freed)
	where a.message_seq = n.seq and a.attempt = coalesce(n.attempt, (@attempts::smallint[])[1])`))

var updateStatuses = ofDay(`
	update dispatcher.messages m set state = n.state, reason = nullif(n.reason, ''), next_at = null,
	  finished_at = case when n.state <> 'accepted' then now() end,
	  pinned = null, parts_left = null, waiting_since = null, waits_for = null,
	  possible_duplicate = n.possible_duplicate
	from unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[]) as n(seq, state, reason,
	  possible_duplicate)
	where m.seq = n.seq`)

// flagMessages marks messages that may have reached their subscribers twice.
var flagMessages = ofDay(`
	update dispatcher.messages set possible_duplicate = true where seq = any($1)`)

// updateDue sets when rows are due next, in microseconds from now; null for never.
const updateDue = `
	update dispatcher.receipts r set due_at = now() + n.wait * interval '1 microsecond',
	  look_at = now() + n.wait * interval '1 microsecond'
	from unnest($1::text[], $2::text[], $3::bigint[]) as n(channel, reference, wait)
	where r.channel = n.channel and r.reference = n.reference`

// dropRows deletes rows of receipts by their message and key, see receiptWrites.drop.
const dropRows = `select dispatcher.drop_denied_receipts($1, $2, $3)`

// freeSlots gives slots back.
const freeSlots = `
	insert into dispatcher.freed_slots as f (channel, slots)
	select channel, n.slots from unnest($1::text[], $2::bigint[]) as n(channel, slots)
	  join dispatcher.channels using (channel) order by channel
	on conflict (channel) do update set slots = f.slots + excluded.slots`
