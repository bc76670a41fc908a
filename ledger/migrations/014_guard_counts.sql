-- Messages of one hour by the first digits of the recipients' numbers: what guards per prefix
-- compare. Every process adds what it received. The row without a prefix is written with every
-- count, also when there was nothing to count: it has the sum, and says that the hour was counted.
create table dispatcher.guard_counts (
  hour     timestamptz not null, -- its beginning
  digits   smallint not null check (digits between 1 and 6), -- how many a prefix has
  prefix   text collate "C" not null, -- with its plus; empty for all numbers
  messages bigint not null check (messages >= 0),
  primary key (hour, digits, prefix)
);

alter table dispatcher.guard_trips drop constraint guard_trips_per_check,
  add constraint guard_trips_per_check check (per in ('tenant', 'calling_code', 'prefix'));
