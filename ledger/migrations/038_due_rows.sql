-- Each due message is read by its own key.
--
-- lock_due had the condition "= any(picked)" beside the key of a message, to leave out the
-- partitions of other days. PostgreSQL used both for the index, and looked all picked numbers up for
-- each message: for 475 of them 226 000 times. Now it has the bounds of one day, and runs once for
-- each day of which messages were picked.

-- lock_due locks messages whose rows in dispatcher.due the caller has locked. It skips messages
-- that another transaction has locked: a late answer to them is being written. The attempt with the
-- ticket is locked after its message, so that nobody else gives its slot back. If another
-- transaction has locked that attempt, to give the slot back, there is no ticket.
--
-- The messages of each day are in the order of picked.
create or replace function dispatcher.lock_due(picked bigint[])
returns setof dispatcher.due_message
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_variable
declare
  low bigint;
  high bigint;
begin
  for low, high in
    select min(n), max(n) from unnest(picked) n group by dispatcher.day_of(n) order by 1
  loop
    return query
      select o.m, p.envelope, p.recipient, t.accepted_at, t.claimed_at,
        (o.m).possible_duplicate and exists (
          select from dispatcher.attempts e
          where e.message_seq = (o.m).seq and e.message_seq between low and high
            and e.outcome in ('unknown', 'accepted')
            and not exists (
              select from dispatcher.ambiguous b where b.message_seq = e.message_seq
                and e.attempt >= b.attempt and e.attempt <= b.last and b.verdict = 'not_taken')),
        case when (o.m).state = 'accepted' then (
          select max(y.settled_at) from dispatcher.attempts y
          where y.message_seq = (o.m).seq and y.message_seq between low and high
            and y.outcome = 'accepted') end,
        (o.m).state = 'accepted' and exists (
          select from dispatcher.receipts r join dispatcher.attempts y
            on y.message_seq = r.message_seq and y.attempt = r.attempt
              and y.message_seq between low and high and y.outcome = 'accepted'
          where r.message_seq = (o.m).seq and r.state in ('delivered', 'undelivered'))
      from unnest(picked) with ordinality as u(seq, nr)
      cross join lateral (
        select l from dispatcher.messages l
        where l.seq = u.seq and l.seq between low and high and l.next_at <= now()
        for update skip locked) as o(m)
      left join lateral (
        select y.envelope, y.recipient from dispatcher.payloads y
        where y.seq = (o.m).seq and y.seq between low and high offset 0) p on true
      left join lateral (
        select coalesce(a.ticket_at, a.claimed_at) as accepted_at, a.claimed_at
        from dispatcher.attempts a
        where (o.m).pinned is not null and a.message_seq = (o.m).seq
          and a.message_seq between low and high and a.attempt = (o.m).attempts
          and a.channel = (o.m).pinned and a.held_until is not null and not a.freed
        for update skip locked) t on true
      where u.seq between low and high
      order by u.nr;
  end loop;
end
$$;

-- due_messages picks up messages with pick_due and locks them with lock_due, in the order in which
-- they were picked.
create or replace function dispatcher.due_messages(
  most integer, besides bigint[], ranks text[], behind jsonb)
returns setof dispatcher.due_message
language plpgsql
as $$
declare
  picked bigint[] := array(select * from dispatcher.pick_due(most, besides, ranks, behind));
begin
  if picked = '{}' then
    return;
  end if;
  if (select dispatcher.day_of(min(n)) = dispatcher.day_of(max(n)) from unnest(picked) n) then
    return query select * from dispatcher.lock_due(picked);
    return;
  end if;
  return query
    select d.* from dispatcher.lock_due(picked) d order by array_position(picked, (d.message).seq);
end
$$;
