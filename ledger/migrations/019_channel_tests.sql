-- Messages that operators send over one channel, to see whether it works.

alter table dispatcher.operator_actions drop constraint operator_actions_action_check;
alter table dispatcher.operator_actions add constraint operator_actions_action_check
  check (action in ('cancel', 'pause', 'resume', 'replay', 'test'));
