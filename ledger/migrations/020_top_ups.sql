-- What prepaid budgets are topped up with, append-only. A budget is a limit in money whose window has
-- no end: 2147483647 seconds in dispatcher.limits, where configured_max is the sum of its top-ups.
--
-- before is that sum before this row, and granted what the budget had granted by then. A correction,
-- of negative micros, leaves what is granted. key is the caller's: a top-up that comes again with it
-- is not booked again.
create table dispatcher.top_ups (
  id       bigint generated always as identity primary key,
  at       timestamptz not null default clock_timestamp(),
  login    text not null default session_user,
  author   text not null check (author <> ''),
  reason   text not null check (reason <> ''),
  channel  text collate "C" not null,
  scope    text collate "C" not null,
  currency text not null check (currency <> ''),
  micros   bigint not null check (micros <> 0),
  before   bigint not null check (before >= 0),
  granted  bigint not null,
  key      text unique check (key <> ''),
  constraint top_ups_budget check (scope <> 'tenant:*' and (channel <> '' or scope <> 'channel')),
  constraint top_ups_granted check (granted between 0 and least(before, before + micros))
);
create index top_ups_budgets on dispatcher.top_ups (channel, scope, currency, id);

create trigger note_login before insert on dispatcher.top_ups
  for each row execute function dispatcher.note_login();

-- Reasons are left out, as in audit.operator_actions.
create view audit.top_ups as
  select id, at, login, author, channel, scope, currency, micros, before, granted, key
  from dispatcher.top_ups;
