package ledger

// joining is the advisory lock of whoever joins parts. One does at a time: parts are rare, bookings quick,
// and so no two processes miss each other's parts.
const joining int64 = 0x6c65646765720006

const lockParts = `select pg_advisory_xact_lock($1)`

// claimMarks remembers what is booked and answers what had not been booked before. Marks
// ascend, so that two bookings of the same wait for each other and never in a circle.
const claimMarks = `
	insert into dispatcher.inbound_seen as s (channel, mark, until)
	select n.channel, n.mark, now() + n.keep * interval '1 second'
	from unnest($1::text[], $2::bytea[], $3::bigint[]) as n(channel, mark, keep)
	on conflict (channel, mark) do update set until = excluded.until where s.until <= now()
	returning channel, mark`

const dropMarks = `
	delete from dispatcher.inbound_seen where (channel, mark) in (
	  select channel, mark from dispatcher.inbound_seen where until <= now() order by until limit $1 for update skip locked)`

const partColumns = `p.seq, p.id, p.channel, p.sender, p.recipient, p.grp, p.parts, p.part, p.body, p.received_at`

// selectParts finds the parts that wait in the groups of those that arrived, the oldest first.
const selectParts = `
	select ` + partColumns + `, false from dispatcher.inbound_parts p
	where (p.channel, p.sender, p.recipient, p.grp, p.parts) in (
	  select * from unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::smallint[]))
	order by p.seq`

// selectOverdue finds the groups of parts that have waited too long, with all their parts, the oldest first.
const selectOverdue = `
	select ` + partColumns + `, p.booked_at < now() - $1::interval from dispatcher.inbound_parts p
	where (p.channel, p.sender, p.recipient, p.grp, p.parts) in (
	  select o.channel, o.sender, o.recipient, o.grp, o.parts from dispatcher.inbound_parts o
	  where o.booked_at < now() - $1::interval order by o.booked_at limit $2)
	order by p.seq`

const insertParts = `
	insert into dispatcher.inbound_parts (id, channel, sender, recipient, grp, parts, part, body, received_at)
	select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int[], $6::smallint[], $7::smallint[], $8::text[], $9::timestamptz[])`

const insertHeard = `insert into dispatcher.inbound_outbox (keys, "values") values ($1, $2)`

const deleteParts = `delete from dispatcher.inbound_parts where seq = any($1)`

// putOn and takeOff change opt-out lists, in ascending order of recipients. Who is on a list stays on
// it since he was first.
const putOn = `
	insert into dispatcher.opt_outs (tenant, recipient, source, channel, author, reason)
	select coalesce(n.tenant, ($1::text[])[1]), n.recipient, $3, coalesce(n.channel, ''), $5, $6
	from unnest($1::text[], $2::bigint[], $4::text[]) as n(tenant, recipient, channel)
	on conflict (recipient) where until is null do nothing`

const takeOff = `
	update dispatcher.opt_outs o set until = greatest(clock_timestamp(), o.since), ended_by = $2,
	  ended_channel = n.channel, ended_author = $4, ended_reason = $5
	from (
	  select c.seq, coalesce(n.channel, '') as channel
	  from unnest($1::bigint[], $3::text[]) as n(recipient, channel) join dispatcher.opt_outs c on c.recipient = n.recipient and c.until is null
	  order by c.recipient for update of c
	) n where o.seq = n.seq and o.until is null`
