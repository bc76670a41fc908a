-- A number for each running process, from which its group instance id in Kafka is made. A process
-- holds a session's advisory lock on its number, so the number is free at the moment it ends,
-- however it ends, and a process that is started again gets the number it had.
--
-- left_at is set at an orderly stop. early_ends counts how many processes in a row ended without
-- one within 30 s of working_from: a crash loop. working_from is when the holder begins to take
-- messages; it lies in the future while the holder pauses because of such ends.
create table dispatcher.identities (
  number       integer primary key check (number > 0),
  instance     bigint not null,
  host         text not null,
  version      text not null,
  taken_at     timestamptz not null,
  working_from timestamptz not null,
  left_at      timestamptz,
  early_ends   integer not null default 0 check (early_ends >= 0)
) with (fillfactor = 50);
