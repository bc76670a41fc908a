-- An accepted message that is to be sent to a further channel may wait for a limit of it, for as
-- long as a day. It has waits_for then, and is woken with those that wait when the routing changes.
-- It is not woken when something becomes free, so the index for that leaves it out: there may be
-- very many.
create index if not exists due_waits_for_channel on dispatcher.due (waits_for, next_at)
  where state = 'waiting' and waits_for is not null;
drop index if exists dispatcher.due_waits_for;

create or replace function dispatcher.wake(seqs bigint[]) returns void
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
