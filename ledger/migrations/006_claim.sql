-- The functions with which claims pick up due messages, and those that find messages by their ids.
--
-- A function with plan_cache_mode = force_custom_plan gives the planner its arguments as constants,
-- so that PostgreSQL reads only the partitions of those days.

-- pick_in_turns picks up at most "most" due messages and locks their rows in dispatcher.due. It
-- skips locked rows. The order is:
--   1. the lanes, in the order of ranks;
--   2. within a lane, messages that expire in less than a minute, the earliest deadline first;
--   3. then the tenants in turn, with an equal share each. What one of them does not need goes to
--      the others. Of one tenant the messages that have been due for longest come first.
-- When a lane has more tenants than there are rows to pick, those after the tenant that "behind"
-- names for it come first: a caller that passes the last tenant served reaches all of them.
--
-- Lanes and tenants are found by skipping through the index due_turns. Each row is returned by the
-- statement that locks it, so it is its latest committed version.
create function dispatcher.pick_in_turns(most integer, besides bigint[], ranks text[], behind jsonb)
returns setof bigint
language plpgsql
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
#variable_conflict use_column
declare
  rest      integer := most;
  this_lane text;
  last_turn text;           -- the tenant of this lane that "behind" names
  tenants   text[];         -- of this lane that have rows left
  passed_at timestamptz[];  -- and the last row that was picked of each
  passed    bigint[];
  turn      integer;
  share     integer;
  got       integer;
  hurried   bigint[];       -- rows of this lane that are near their deadline
  found_row dispatcher.due;
begin
  for this_lane in
    with recursive l(lane) as (
      (select lane from dispatcher.due order by lane limit 1)
      union all
      select (select n.lane from dispatcher.due n where n.lane > l.lane order by n.lane limit 1)
      from l where l.lane is not null
    )
    select lane from l where lane is not null order by array_position(ranks, lane) nulls last, lane
  loop
    last_turn := coalesce(behind ->> this_lane, '');
    with recursive t(tenant, next_at) as (
      (select tenant, next_at from dispatcher.due where lane = this_lane
        order by tenant, next_at limit 1)
      union all
      select n.tenant, n.next_at from t, lateral (
        select d.tenant, d.next_at from dispatcher.due d
        where d.lane = this_lane and d.tenant > t.tenant order by d.tenant, d.next_at limit 1) n
    )
    select array_agg(tenant order by tenant <= last_turn, tenant) into tenants
      from t where next_at <= now();
    continue when tenants is null;
    hurried := '{}';
    for found_row in
      select d.* from dispatcher.due d
      where d.next_at <= now() and d.lane = this_lane
        and d.expires_at <= now() + interval '1 minute' and d.seq <> all(besides)
      order by d.expires_at, d.seq limit rest for update skip locked
    loop
      return next found_row.seq;
      hurried := hurried || found_row.seq;
    end loop;
    rest := rest - cardinality(hurried);
    if rest = 0 then
      return;
    end if;
    passed_at := array_fill(timestamptz '-infinity', array[cardinality(tenants)]);
    passed := array_fill(0::bigint, array[cardinality(tenants)]);
    while cardinality(tenants) > 0 loop
      share := (rest + cardinality(tenants) - 1) / cardinality(tenants);
      for turn in 1 .. cardinality(tenants) loop
        got := 0;
        for found_row in
          select d.* from dispatcher.due d
          where d.next_at <= now() and d.lane = this_lane and d.tenant = tenants[turn]
            and (d.next_at, d.seq) > (passed_at[turn], passed[turn]) and d.seq <> all(besides)
            and d.seq <> all(hurried)
          order by d.next_at, d.seq limit least(share, rest) for update skip locked
        loop
          return next found_row.seq;
          got := got + 1;
        end loop;
        rest := rest - got;
        if rest = 0 then
          return;
        end if;
        if got < share then
          tenants[turn] := null;
        else
          passed_at[turn] := found_row.next_at;
          passed[turn] := found_row.seq;
        end if;
      end loop;
      select array_agg(u.tenant order by u.nr), array_agg(u.at order by u.nr),
          array_agg(u.seq order by u.nr)
        into tenants, passed_at, passed
        from unnest(tenants, passed_at, passed) with ordinality as u(tenant, at, seq, nr)
        where u.tenant is not null;
    end loop;
  end loop;
end
$$;

-- pick_due picks up at most "most" due messages and locks their rows in dispatcher.due. Usually
-- that is all of them. Only if there are more does it call pick_in_turns.
create function dispatcher.pick_due(most integer, besides bigint[], ranks text[], behind jsonb)
returns setof bigint
language plpgsql
as $$
declare
  there integer := (select count(*) from (
    select from dispatcher.due where next_at <= now() and seq <> all(besides) limit most + 1) n);
begin
  if there > most then
    return query select * from dispatcher.pick_in_turns(most, besides, ranks, behind);
  elsif there > 0 then
    return query select seq from dispatcher.due where next_at <= now() and seq <> all(besides)
      order by next_at limit most for update skip locked;
  end if;
end
$$;

-- A message that a claim has picked up, with its payload.
create type dispatcher.due_message as (
  message      dispatcher.messages,
  envelope     bytea,
  recipient    bigint,
  -- The ticket of its last attempt, if it is pinned to that channel and still holds a slot there:
  -- when the slot was taken, and when the attempt was claimed.
  accepted_at  timestamptz,
  claimed_at   timestamptz,
  maybe_taken  boolean,     -- a possible duplicate, and some attempt may have been taken
  taken_at     timestamptz, -- of an accepted message: when its last attempt was accepted
  receipt_came boolean      -- of an accepted message: it has a final receipt for some part
);

-- due_messages picks up messages with pick_due and locks them with lock_due.
create function dispatcher.due_messages(most integer, besides bigint[], ranks text[], behind jsonb)
returns setof dispatcher.due_message
language plpgsql
as $$
declare
  picked bigint[] := array(select * from dispatcher.pick_due(most, besides, ranks, behind));
begin
  if picked = '{}' then
    return;
  end if;
  return query select * from dispatcher.lock_due(picked);
end
$$;

-- lock_due locks messages whose rows in dispatcher.due the caller has locked. It skips messages
-- that another transaction has locked: a late answer to them is being written. The attempt with the
-- ticket is locked after its message, so that nobody else gives its slot back. If another
-- transaction has locked that attempt, to give the slot back, there is no ticket.
create function dispatcher.lock_due(picked bigint[])
returns setof dispatcher.due_message
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
    select o.m, p.envelope, p.recipient, t.accepted_at, t.claimed_at,
      (o.m).possible_duplicate and exists (
        select from dispatcher.attempts e
        where e.message_seq = (o.m).seq and e.message_seq = any(picked)
          and e.outcome in ('unknown', 'accepted')
          and not exists (
            select from dispatcher.ambiguous b where b.message_seq = e.message_seq
              and e.attempt >= b.attempt and e.attempt <= b.last and b.verdict = 'not_taken')),
      case when (o.m).state = 'accepted' then (
        select max(y.settled_at) from dispatcher.attempts y
        where y.message_seq = (o.m).seq and y.message_seq = any(picked)
          and y.outcome = 'accepted') end,
      (o.m).state = 'accepted' and exists (
        select from dispatcher.receipts r join dispatcher.attempts y
          on y.message_seq = r.message_seq and y.attempt = r.attempt
            and y.message_seq = any(picked) and y.outcome = 'accepted'
        where r.message_seq = (o.m).seq and r.state in ('delivered', 'undelivered'))
    from (
      select l from unnest(picked) with ordinality as u(seq, nr)
      join dispatcher.messages l on l.seq = u.seq
      where l.seq = any(picked) and l.next_at <= now()
      order by u.nr for update of l skip locked
    ) as o(m)
    left join lateral (
      select y.envelope, y.recipient from dispatcher.payloads y
      where y.seq = (o.m).seq and y.seq = any(picked) offset 0) p on true
    left join lateral (
      select coalesce(a.ticket_at, a.claimed_at) as accepted_at, a.claimed_at
      from dispatcher.attempts a
      where (o.m).pinned is not null and a.message_seq = (o.m).seq and a.message_seq = any(picked)
        and a.attempt = (o.m).attempts and a.channel = (o.m).pinned
        and a.held_until is not null and not a.freed
      for update skip locked) t on true;
end
$$;

-- wake makes waiting messages due now. The caller has locked their rows in dispatcher.due, so wake
-- must not wait: it skips locked messages, which another transaction is deciding about.
create function dispatcher.wake(seqs bigint[]) returns void
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
begin
  with asleep as materialized (
    select seq from dispatcher.messages
    where seq = any(seqs) and next_at > now()
      and (state = 'waiting' or state = 'accepted' and waits_for is not null) for update skip locked
  )
  update dispatcher.messages m set next_at = now() from asleep a
  where m.seq = a.seq and m.seq = any(seqs);
end
$$;

-- digests returns the digests of the messages with these ids, if they still have their payload.
create function dispatcher.digests(ids text[]) returns table (id text, digest bigint)
language plpgsql stable
set plan_cache_mode = force_custom_plan
as $$
declare
  seqs bigint[] := array(
    select i.seq from dispatcher.ids_0 i where i.id = any(ids)
    union all
    select i.seq from dispatcher.ids_1 i where i.id = any(ids));
begin
  return query select m.id, p.digest
    from dispatcher.messages m join dispatcher.payloads p using (seq)
    where m.seq = any(seqs) and p.seq = any(seqs);
end
$$;

-- seq_of returns the number of the message with an id, null if there is none: from the ids that are
-- still recognised, else from past_ids, the newest day first. The bounds of a day are constants, so
-- that PostgreSQL reads only its partition. A day that is being dropped counts as empty.
create function dispatcher.seq_of(wanted text) returns bigint
language plpgsql stable
as $$
declare
  found_seq bigint := coalesce((select seq from dispatcher.ids_0 where id = wanted),
    (select seq from dispatcher.ids_1 where id = wanted));
  past      integer;
begin
  if found_seq is not null then
    return found_seq;
  end if;
  for past in select day from dispatcher.days where ids_indexed order by day desc loop
    execute format('select seq from dispatcher.past_ids where id = $1 and seq >= %s and seq < %s',
      dispatcher.first_of(past), dispatcher.first_of(past + 1)) into found_seq using wanted;
    if found_seq is not null then
      return found_seq;
    end if;
  end loop;
  return null;
end
$$;
