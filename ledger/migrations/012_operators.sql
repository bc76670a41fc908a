-- What operators did by hand to messages and to what is sent, append-only: routing versions, settled
-- ambiguities, opt-outs and erasures have records of their own. subject is the id of a message, or
-- what was paused. login is that of the database; author is whom the command was told.
create table dispatcher.operator_actions (
  id      bigint generated always as identity primary key,
  at      timestamptz not null default clock_timestamp(),
  login   text not null default session_user,
  author  text not null check (author <> ''),
  reason  text not null check (reason <> ''),
  action  text not null check (action in ('cancel', 'pause', 'resume', 'replay')),
  subject text not null
);

-- Reasons are left out: people write numbers into them.
create view audit.operator_actions as
  select id, at, login, author, action, subject from dispatcher.operator_actions;
