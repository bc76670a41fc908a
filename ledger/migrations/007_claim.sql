-- What claims pick up, and who is a message by its id.

-- pick_in_turns picks up to most messages that have come due, and locks their rows in due. Rows
-- that somebody else has locked are passed over. Lanes come in the order of ranks, and within a lane
-- tenants take turns: each gets an equal part, and what some of them do not need goes to the others.
-- Within a tenant older rows come first. Before all that, rows of the lane with less than a minute
-- left before they expire get what they need, the earliest deadline first. When there are more
-- tenants than rows to pick, those after the one that "behind" names for the lane are first, so that
-- whoever passes the last one that he got there comes round to all.
--
-- Lanes and tenants are found by jumps through the index due_turns, one for each. A row is returned
-- by the statement that locks it, so it is what was committed last.
create function dispatcher.pick_in_turns(most integer, besides bigint[], ranks text[], behind jsonb)
returns setof bigint
language plpgsql
set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off
as $$
#variable_conflict use_column
declare
  rest      integer := most;
  this_lane text;
  last_turn text;           -- the tenant of this lane that had it
  tenants   text[];         -- of this lane that have rows left
  passed_at timestamptz[];  -- and the last row that each of them got
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
      (select tenant, next_at from dispatcher.due where lane = this_lane order by tenant, next_at limit 1)
      union all
      select n.tenant, n.next_at from t, lateral (
        select d.tenant, d.next_at from dispatcher.due d
        where d.lane = this_lane and d.tenant > t.tenant order by d.tenant, d.next_at limit 1) n
    )
    select array_agg(tenant order by tenant <= last_turn, tenant) into tenants from t where next_at <= now();
    continue when tenants is null;
    hurried := '{}';
    for found_row in
      select d.* from dispatcher.due d
      where d.next_at <= now() and d.lane = this_lane and d.expires_at <= now() + interval '1 minute'
        and d.seq <> all(besides)
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
      select array_agg(u.tenant order by u.nr), array_agg(u.at order by u.nr), array_agg(u.seq order by u.nr)
        into tenants, passed_at, passed
        from unnest(tenants, passed_at, passed) with ordinality as u(tenant, at, seq, nr)
        where u.tenant is not null;
    end loop;
  end loop;
end
$$;

-- pick_due picks up to most messages that have come due, and locks their rows in due. Usually all
-- that are due fit, and then there is nothing to divide; otherwise see pick_in_turns.
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
    return query select seq from dispatcher.due
      where next_at <= now() and seq <> all(besides) order by next_at limit most for update skip locked;
  end if;
end
$$;

-- due_message is a message that a claim has picked up, with its payload. accepted_at and claimed_at
-- are of the ticket of its last attempt, if it is pinned to a channel and still holds a slot there.
-- maybe_taken: it may have been sent twice, and an attempt is not certain not to have been taken.
create type dispatcher.due_message as (
  message     dispatcher.messages,
  envelope    bytea,
  recipient   bigint,
  accepted_at timestamptz,
  claimed_at  timestamptz,
  maybe_taken boolean
);

-- due_messages picks messages up as pick_due does, and locks them. One that somebody else has
-- locked is passed over: its late answer is being written. The attempt with the ticket is locked
-- after its message, so that nobody else gives the slot back meanwhile; who is about to do so is
-- not waited for, and then there is no ticket any more.
--
-- The numbers are given to the planner as constants, so that it looks at no other day.
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
        where e.message_seq = (o.m).seq and e.message_seq = any(picked) and e.outcome in ('unknown', 'accepted')
          and not exists (
            select from dispatcher.ambiguous b where b.message_seq = e.message_seq
              and e.attempt >= b.attempt and e.attempt <= b.last and b.verdict = 'not_taken'))
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

-- wake lets messages that wait look again now. The caller has locked their rows in due, so it waits
-- for nobody: a message that somebody else has locked is passed over, for that decides about it.
create function dispatcher.wake(seqs bigint[]) returns void
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
begin
  with asleep as materialized (
    select seq from dispatcher.messages
    where seq = any(seqs) and next_at > now() and state = 'waiting' for update skip locked
  )
  update dispatcher.messages m set next_at = now() from asleep a
  where m.seq = a.seq and m.seq = any(seqs);
end
$$;

-- digests are those of the messages with some ids. A message whose payload is gone has none any more.
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
  return query select m.id, p.digest from dispatcher.messages m join dispatcher.payloads p using (seq)
    where m.seq = any(seqs) and p.seq = any(seqs);
end
$$;

-- seq_of is the number of the message with an id, null when there is none. It finds messages of the
-- days whose ids are still recognised, and older ones by what was stored of their ids after their day. The
-- bounds are constants, so that it looks at no other day, and a day that is dropped meanwhile is
-- empty.
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
