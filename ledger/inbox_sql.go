package ledger

// joining is the advisory lock for joining parts, so that two processes do not miss each other's
// parts. A write of parts takes it shared, and locks their groups in ascending order, with
// joiningGroup as the first key. RecordIncomplete, which reads all groups, takes it exclusively.
const (
	joining      int64 = 0x6c65646765720006
	joiningGroup int32 = 0x70617274
)

const lockAllParts = `select pg_advisory_xact_lock($1)`

const shareParts = `select pg_advisory_xact_lock_shared($1)`

const lockGroups = `select pg_advisory_xact_lock($1, g.lock) from unnest($2::int[]) as g(lock)`

// claimMarks stores the marks of what is recorded, and returns those that were not stored before.
// Marks ascend, so that two writes with the same marks wait for each other without a deadlock.
const claimMarks = `
	insert into dispatcher.inbound_seen as s (channel, mark, until)
	select n.channel, n.mark, now() + n.keep * interval '1 second'
	from unnest($1::text[], $2::bytea[], $3::bigint[]) as n(channel, mark, keep)
	on conflict (channel, mark) do update set until = excluded.until where s.until <= now()
	returning channel, mark`

const dropMarks = `
	delete from dispatcher.inbound_seen where (channel, mark) in (
	  select channel, mark from dispatcher.inbound_seen where until <= now() order by until
	    limit $1 for update skip locked)`

// selectParts reads the waiting parts of the groups that new parts belong to, oldest first.
const selectParts = `
	select p.seq, p.id, p.channel, p.sender, p.recipient, p.grp, p.parts, p.part, p.body,
	  p.received_at, false
	from dispatcher.inbound_parts p
	where (p.channel, p.sender, p.recipient, p.grp, p.parts) in (
	  select * from unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::smallint[]))
	order by p.seq`

// selectOverdue reads the groups with a part that has waited too long, with all their parts, oldest
// first.
const selectOverdue = `
	select p.seq, p.id, p.channel, p.sender, p.recipient, p.grp, p.parts, p.part, p.body,
	  p.received_at, p.booked_at < now() - $1::interval
	from dispatcher.inbound_parts p
	where (p.channel, p.sender, p.recipient, p.grp, p.parts) in (
	  select o.channel, o.sender, o.recipient, o.grp, o.parts from dispatcher.inbound_parts o
	  where o.booked_at < now() - $1::interval order by o.booked_at limit $2)
	order by p.seq`

const insertParts = `
	insert into dispatcher.inbound_parts (id, channel, sender, recipient, grp, parts, part, body,
	  received_at)
	select * from unnest(@ids::text[], @channels::text[], @senders::text[], @recipients::text[],
	  @groups::int[], @parts::smallint[], @numbers::smallint[], @bodies::text[],
	  @received_ats::timestamptz[])`

const insertInboundNotices = `insert into dispatcher.inbound_outbox (keys, "values") values ($1, $2)`

const deleteParts = `delete from dispatcher.inbound_parts where seq = any($1)`

// listsLock is the advisory lock of a transaction that changes opt-out lists, taken by lockLists.
// One follows the other. So nobody ends an entry after putOn has found it and before relist updates
// its time, and there is no deadlock.
const (
	listsLock int64 = 0x6c65646765720008
	lockLists       = `select pg_advisory_xact_lock($1)`
)

// putOn puts recipients on opt-out lists. The entry of a recipient who is on the list already stays
// as it is.
const putOn = `
	insert into dispatcher.opt_outs (tenant, recipient, source, channel, author, reason, heard_at,
	  sent_at)
	select coalesce(n.tenant, (@tenants::text[])[1]), n.recipient, @source,
	  coalesce(n.channel, ''), @author, @reason,
	  now() - coalesce(n.ago, 0) * interval '1 microsecond', n.sent_at
	from unnest(@tenants::text[], @recipients::bigint[], @channels::text[], @agos::bigint[],
	  @sent_ats::timestamptz[]) as n(tenant, recipient, channel, ago, sent_at)
	on conflict (recipient) where until is null do nothing`

// relist changes the entries of recipients who are on a list: it ends an entry, or updates its time
// when the recipient opted out again. It returns how many it ended. It runs after putOn.
//
// An entry is not ended by an OptIn that is older. The times at which OptIn and STOP were sent are
// compared if both are known from one provider. Otherwise the OptIn must not be older than the
// arrival of the STOP, which is never before it was sent: when the order is not certain, the
// recipient stays on the list.
const relist = `
	with changed as (
	  update dispatcher.opt_outs o set
	    heard_at = case when n.ends then o.heard_at else n.heard_at end,
	    sent_at = case when n.ends then o.sent_at when n.channel = o.channel then n.sent_at end,
	    until = case when n.ends then greatest(clock_timestamp(), o.since) end,
	    ended_by = case when n.ends then @source end,
	    ended_channel = case when n.ends then n.channel else '' end,
	    ended_author = case when n.ends then @author else '' end,
	    ended_reason = case when n.ends then @reason else '' end
	  from (
	    select c.seq, n.ends, n.channel, n.heard_at, n.sent_at
	    from (
	      select recipient, coalesce(ends, @end_all) as ends, coalesce(channel, '') as channel,
	        sent_at, now() - coalesce(ago, 0) * interval '1 microsecond' as heard_at
	      from unnest(@recipients::bigint[], @channels::text[], @agos::bigint[],
	        @sent_ats::timestamptz[], @ends::boolean[]) as u(recipient, channel, ago, sent_at, ends)
	    ) n join dispatcher.opt_outs c on c.recipient = n.recipient and c.until is null and case
	      when not n.ends then n.heard_at > c.heard_at
	      when n.channel = c.channel and n.sent_at is not null and c.sent_at is not null
	        then (n.sent_at, n.heard_at) >= (c.sent_at, c.heard_at)
	      else least(n.sent_at, n.heard_at) >= c.heard_at
	    end
	    order by c.recipient for update of c
	  ) n where o.seq = n.seq and o.until is null
	  returning o.until
	)
	select count(until) from changed`
