-- The console changes opt-out lists too: its authors were authenticated.
alter table dispatcher.opt_outs drop constraint opt_outs_source_check,
  add constraint opt_outs_source_check
    check (source in ('keyword', 'command', 'import', 'api', 'console')) not valid,
  drop constraint opt_outs_ended_by_check,
  add constraint opt_outs_ended_by_check
    check (ended_by in ('keyword', 'command', 'api', 'console')) not valid;
