-- Limits of tenants and prefixes, on one channel or over all, in money as well; places in a
-- second; tickets; what a provider that is throttled makes of a channel's rate; for how
-- long and for what a message waited. It only adds: the previous release inserts, claims and
-- settles as before. It reads neither a limit in money nor a narrow one, so such a limit is to
-- be applied when its last instance has been replaced.

-- A limit of scope channel counts all messages of its channel; a narrower one those of a
-- tenant ("tenant:shop") or to a prefix ("prefix:+44"). channel is empty for a limit over all
-- channels. Limits in money count micros of currency. next_at is the place of the next unit of
-- a paced limit, or the theoretical arrival time of a sliding one, and pace the nanoseconds between two units at
-- which it was made. taken holds what is counted apart in this window, as an object of tally
-- and units. since is when this limit began.
-- limits_granted (001) is what keeps all of them.
alter table dispatcher.limits
  add column currency text,
  add column next_at timestamptz,
  add column pace bigint,
  add column taken jsonb,
  add column since timestamptz not null default now(),
  drop constraint limits_unit_check,
  add constraint limits_unit check (unit in ('messages', 'segments', 'money')),
  add constraint limits_currency check ((unit = 'money') = (currency is not null)),
  add constraint limits_pace check (pace > 0),
  add constraint limits_scope check (channel <> '' or scope <> 'channel'),
  add constraint limits_taken check (jsonb_typeof(taken) = 'object');

-- A limit that is removed takes next_at, pace and taken along, so that it goes on where it stood
-- when it comes back. since is that of the limit; until is set when it was removed in this window.
alter table dispatcher.limit_history
  add column currency text,
  add column next_at timestamptz,
  add column pace bigint,
  add column taken jsonb,
  add column since timestamptz,
  add column until timestamptz;
-- One window may have had limits in two currencies, one after the other.
alter table dispatcher.limit_history drop constraint limit_history_pkey;
create unique index limit_history_key on dispatcher.limit_history
  (channel, scope, window_seconds, unit, window_start, coalesce(currency, ''));
create index limit_history_age on dispatcher.limit_history (window_seconds, window_start); -- for dropping old ones

create or replace view audit.limit_windows as
  select channel, scope, window_seconds, window_start, unit, max, granted, reserved, currency, next_at, since,
    null::timestamptz as until
  from dispatcher.limits where window_start > 'epoch'
  union all
  select channel, scope, window_seconds, window_start, unit, max, granted, reserved, currency, next_at, since, until
  from dispatcher.limit_history;

-- Windows that began in the future, because the database's clock was ahead when they were opened, and that an
-- operator has started again: from which window to which, with what was granted in each. set_aside are the
-- windows that had been left and would be opened a second time, as objects of window_start, max and granted.
create table dispatcher.limit_restarts (
  id             bigint generated always as identity primary key,
  channel        text collate "C" not null,
  scope          text collate "C" not null,
  window_seconds integer not null,
  unit           text collate "C" not null,
  restarted_at   timestamptz not null default clock_timestamp(),
  version        bigint not null,
  author         text not null,
  reason         text not null,
  was_start      timestamptz not null,
  was_granted    bigint not null,
  window_start   timestamptz not null,
  granted        bigint not null,
  set_aside      jsonb,
  constraint limit_restarts_back check (window_start < was_start)
);

create view audit.limit_restarts as
  select channel, scope, window_seconds, unit, restarted_at, version, author, reason, was_start, was_granted,
    window_start, granted, set_aside
  from dispatcher.limit_restarts;

-- How far the channel's rate is below its limits since its provider last asked to slow down:
-- to ease_rate at ease_since, recovering since; nothing is submitted before ease_until.
alter table dispatcher.channels
  add column ease_rate double precision,
  add column ease_since timestamptz,
  add column ease_until timestamptz,
  add constraint channels_ease check (ease_rate > 0 and ease_rate <= 1),
  add constraint channels_eased check ((ease_rate is null) = (ease_since is null));

-- An attempt holds an active slot of its channel while it has no outcome, and until held_until
-- if that is set, unless freed says that the slot was given back before, or went on to the
-- next attempt. ticket_at is when the ticket was given that the attempt goes on with; null when
-- it got one of its own at its claim. leaves_at is the place of the attempt, where a limit gives
-- places: it counts in the second in which it may leave, which may be a later one than that of its
-- claim; null for at once.
-- Only attempts that hold a slot beyond their answer are in the index.
alter table dispatcher.attempts
  add column held_until timestamptz,
  add column ticket_at timestamptz,
  add column leaves_at timestamptz,
  add column freed boolean not null default false,
  add constraint attempts_held check (held_until is null or outcome is not null);
create index attempts_held_until on dispatcher.attempts (held_until) where held_until is not null and not freed;

create or replace view audit.attempts as
  select m.id as message_id, a.attempt, a.channel, a.reason, a.outcome, a.provider_reference, a.provider_code,
         a.segments, a.price_micros, a.currency, a.claimed_at, a.settled_at, a.delivered_at,
         date_trunc('minute', coalesce(a.ticket_at, a.claimed_at)) as ticket_bucket,
         coalesce(a.ticket_at, a.claimed_at) as ticket_accepted_at, a.claimed_at as ticket_last_check_in,
         coalesce(a.leaves_at, a.claimed_at) as counted_at
  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq;

-- waiting_since and waits_for tell about the wait that is under way: since when it was last
-- looked at, and for which channel or scope. waits lists those that are over, as
-- {"reason", "on", "ms"}. A message that never waits has nulls, which take no room.
alter table dispatcher.messages
  add column waiting_since timestamptz,
  add column waits_for text,
  add column waits jsonb,
  add constraint messages_waits check (jsonb_typeof(waits) = 'array');
create index messages_turns on dispatcher.messages (lane, tenant, next_at, seq) where next_at is not null;
create index messages_deadlines on dispatcher.messages (lane, expires_at, seq) where next_at is not null;
create index messages_waits_for on dispatcher.messages (waits_for, next_at) where next_at is not null and waits_for is not null;

-- counts is what the instance granted in the last whole minute: an object by channel of messages,
-- segments and micros. It is null in rows of earlier releases, which know nothing of slots that were given back early.
-- beating_since is when the unbroken row of heart-beats began that last_seen is the latest of.
alter table dispatcher.instances
  add column counts jsonb,
  add column beating_since timestamptz not null default now(),
  add constraint instances_counts check (jsonb_typeof(counts) = 'object');

-- due_in_turns picks up to most rows that have come due, and locks them. Rows that somebody
-- else has locked are passed over. Lanes come in the order of ranks, and within a lane tenants
-- take turns: each gets an equal part, and what some of them do not need goes to the others.
-- Within a tenant older rows come first. Before all that, rows of the lane with less than a minute
-- left before they expire get what they need, the earliest deadline first. When there are more tenants than rows to pick, those
-- after the one that "behind" names for the lane are first, so that whoever passes the last one that he got there comes
-- round to all.
--
-- Lanes and tenants are found by jumps through the index messages_turns, one for each. A row
-- is returned by the statement that locks it, so it is what was committed last.
create function dispatcher.due_in_turns(most integer, besides bigint[], ranks text[], behind jsonb)
returns setof dispatcher.messages
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
  found_row dispatcher.messages;
begin
  for this_lane in
    with recursive l(lane) as (
      (select lane from dispatcher.messages where next_at is not null order by lane limit 1)
      union all
      select (select n.lane from dispatcher.messages n where n.next_at is not null and n.lane > l.lane order by n.lane limit 1)
      from l where l.lane is not null
    )
    select lane from l where lane is not null order by array_position(ranks, lane) nulls last, lane
  loop
    last_turn := coalesce(behind ->> this_lane, '');
    with recursive t(tenant, next_at) as (
      (select tenant, next_at from dispatcher.messages
       where next_at is not null and lane = this_lane order by tenant, next_at limit 1)
      union all
      select n.tenant, n.next_at from t, lateral (
        select m.tenant, m.next_at from dispatcher.messages m
        where m.next_at is not null and m.lane = this_lane and m.tenant > t.tenant order by m.tenant, m.next_at limit 1) n
    )
    select array_agg(tenant order by tenant <= last_turn, tenant) into tenants from t where next_at <= now();
    continue when tenants is null;
    hurried := '{}';
    for found_row in
      select m.* from dispatcher.messages m
      where m.next_at <= now() and m.lane = this_lane and m.expires_at <= now() + interval '1 minute' and m.seq <> all(besides)
      order by m.expires_at, m.seq limit rest for update skip locked
    loop
      return next found_row;
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
          select m.* from dispatcher.messages m
          where m.next_at <= now() and m.lane = this_lane and m.tenant = tenants[turn]
            and (m.next_at, m.seq) > (passed_at[turn], passed[turn]) and m.seq <> all(besides) and m.seq <> all(hurried)
          order by m.next_at, m.seq limit least(share, rest) for update skip locked
        loop
          return next found_row;
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
        from unnest(tenants, passed_at, passed) with ordinality as u(tenant, at, seq, nr) where u.tenant is not null;
    end loop;
  end loop;
end
$$;

-- due picks up to most rows that have come due, and locks them. Usually all that are due fit,
-- and then there is nothing to divide; otherwise see due_in_turns.
create function dispatcher.due(most integer, besides bigint[], ranks text[], behind jsonb)
returns setof dispatcher.messages
language plpgsql
as $$
declare
  there integer := (select count(*) from (
    select from dispatcher.messages where next_at <= now() and seq <> all(besides) limit most + 1) n);
begin
  if there > most then
    return query select * from dispatcher.due_in_turns(most, besides, ranks, behind);
  elsif there > 0 then
    return query select * from dispatcher.messages
      where next_at <= now() and seq <> all(besides) order by next_at limit most for update skip locked;
  end if;
end
$$;
