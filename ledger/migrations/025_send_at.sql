-- send_at is when a message that came as scheduled comes due; null for others. How long a message
-- waits counts from then. A message that was received as scheduled before this migration, and is
-- tried again after an attempt, counts from its receipt.
alter table dispatcher.messages add column send_at timestamptz;
alter table dispatcher.due add column send_at timestamptz;
update dispatcher.due set send_at = next_at where state = 'scheduled';

create or replace function dispatcher.keep_due() returns trigger
language plpgsql as $$
begin
  if new.next_at is null then
    delete from dispatcher.due where seq = new.seq;
  else
    insert into dispatcher.due (seq, next_at, expires_at, lane, tenant, state, reason, waits_for,
      send_at)
    values (new.seq, new.next_at, new.expires_at, new.lane, new.tenant, new.state, new.reason,
      new.waits_for, coalesce(new.send_at, case when new.state = 'scheduled' then new.next_at end))
    on conflict (seq) do update set next_at = excluded.next_at, expires_at = excluded.expires_at,
      state = excluded.state, reason = excluded.reason, waits_for = excluded.waits_for;
  end if;
  return null;
end
$$;
