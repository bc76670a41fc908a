-- Two more actions of operators: a cancellation that is stored for a message which has not come yet,
-- and one of all messages that a filter finds.
alter table dispatcher.operator_actions drop constraint operator_actions_action_check,
  add constraint operator_actions_action_check
    check (action in ('cancel', 'cancel_many', 'cancel_pending', 'pause', 'resume', 'replay', 'test'))
    not valid;

-- For explanations, also to finance. The reason may have a number, so it is left out.
create view facts.pending_cancellations as
  select id, author, via, at from dispatcher.pending_cancellations;
