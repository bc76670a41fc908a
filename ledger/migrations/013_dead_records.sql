-- Records that could not be used, for who looks at them and publishes them again.

-- A replay says which dead record it published again, and under which id: message_seq is the number
-- of the dead record.
alter table dispatcher.operator_actions add column message_seq bigint;
alter table dispatcher.operator_actions add column new_id text collate "C";
alter table dispatcher.operator_actions add constraint operator_actions_replay
  check ((action = 'replay') = (message_seq is not null) and (message_seq is null) = (new_id is null));
create index operator_actions_replays on dispatcher.operator_actions (message_seq, id)
  where message_seq is not null;

-- Only a record that could not be used has a detail. A record without an id of its own is named by its
-- position, which is longer than an id may be. replayed_as is the id that it was last published
-- under again.
create view facts.dead_records as
  select m.seq, case when length(m.id) <= 64 then m.id end as id, m.lane, m.tenant, m.reason, m.detail,
    m.received_at, m.topic, m.kafka_partition, m.kafka_offset,
    r.at as replayed_at, r.author as replayed_by, r.new_id as replayed_as
  from dispatcher.messages m
  left join lateral (
    select a.at, a.author, a.new_id from dispatcher.operator_actions a
    where a.message_seq = m.seq order by a.id desc limit 1) r on true
  where m.detail is not null;

create view audit.dead_records as
  select id, lane, tenant, reason, detail, received_at, topic, kafka_partition, kafka_offset, replayed_at,
    replayed_by, replayed_as
  from facts.dead_records;

-- release_dead gives the id of a dead record back, so that the record can be published again under
-- it, and says whether the id is free. Nothing was ever sent of a dead record, so nothing can be sent
-- twice by this. Other ids stay: the dispatcher's login may delete none. The lock waits for the
-- claims that are under way; the caller bounds for how long. A claim that begins meanwhile waits, and
-- finds the id free.
create function dispatcher.release_dead(number bigint) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  dead_id text := (select m.id from dispatcher.messages m
    where m.seq = number and m.state = 'dead' and length(m.id) <= 64);
begin
  if dead_id is null then
    return false;
  end if;
  lock table dispatcher.ids_0, dispatcher.ids_1 in share row exclusive mode;
  delete from dispatcher.ids_0 i where i.id = dead_id and i.seq = number;
  delete from dispatcher.ids_1 i where i.id = dead_id and i.seq = number;
  return not exists (select from dispatcher.ids_0 i where i.id = dead_id)
    and not exists (select from dispatcher.ids_1 i where i.id = dead_id);
end
$$;
revoke execute on function dispatcher.release_dead from public;
