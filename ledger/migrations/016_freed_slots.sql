-- Slots that settlements and receipts give back are counted apart from channels, because a claim
-- holds the rows of its channels locked until its commit. So claims do not wait for settlements,
-- nor settlements for claims.

-- How many active slots of a channel were ever given back. Each channel has a row.
create table dispatcher.freed_slots (
  channel text collate "C" primary key references dispatcher.channels on delete cascade,
  slots   bigint not null default 0 check (slots >= 0)
) with (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

create function dispatcher.count_freed() returns trigger
language plpgsql as $$
begin
  insert into dispatcher.freed_slots (channel) values (new.channel);
  return null;
end
$$;

create trigger channels_freed after insert on dispatcher.channels
  for each row execute function dispatcher.count_freed();

-- How many of the freed slots active no longer counts. A claim that has locked the channel
-- subtracts the others from active and adds them here. So active is never less than what is in
-- flight.
alter table dispatcher.channels add column freed bigint not null default 0;

insert into dispatcher.freed_slots (channel) select channel from dispatcher.channels;

create or replace view audit.active as
  select c.channel, case when c.configured_max = 0 then 0
      else greatest(c.configured_max, c.active + c.freed - f.slots) end as max,
    c.active + c.freed - f.slots as active
  from dispatcher.channels c join dispatcher.freed_slots f using (channel);

create or replace view facts.channels as
  select channel, a.max as active_max, a.active, c.last_assigned, c.removed_at, c.ease_rate,
    c.ease_since, c.ease_until
  from dispatcher.channels c join audit.active a using (channel);
