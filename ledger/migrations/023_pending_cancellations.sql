-- Cancellations of messages that are not stored yet. The claim that stores such a message ends it,
-- and moves the row to operator_actions.
create table dispatcher.pending_cancellations (
  id     text collate "C" primary key, -- of the message
  author text not null,
  reason text not null,
  via    text not null,
  at     timestamptz not null default now()
);
create index pending_cancellations_at on dispatcher.pending_cancellations (at);
