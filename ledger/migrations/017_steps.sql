-- What leads from the agreed to the carried messages, step by step, in segments and money too.

-- cause is why no channel is known to have taken the messages of the row: rejected, opted_out,
-- failed, expired, cancelled, no_channel, no_answer, or open for those that have not ended. It is
-- empty for messages that a channel took. text_segments are those of the messages' texts, while
-- segments are those that the channel billed.
alter table dispatcher.choice_figures add column if not exists cause text not null default '';
alter table dispatcher.carried_figures
  add column if not exists text_segments bigint not null default 0;

-- figures says which columns a revision of a day filled in: 1 is without these two, 2 is with them.
-- So a day whose newest revision has 1 has no such figures, and 0 in them means nothing.
alter table dispatcher.closings add column if not exists figures smallint not null default 1;

create or replace view facts.stored_messages as
  select seq, id, lane, tenant, state, received_at, route, routing_version, first_choice, attempts, calling_code,
    number_hmac, segments, sender, reason
  from dispatcher.messages;

create or replace view audit.closings as
  select day, revision, zone, from_at, to_at, at, changes, figures from dispatcher.closings;
create or replace view audit.choice_figures as
  select day, revision, hour, routing_version, route, channel, tenant, calling_code, messages,
         rejected, failed, unknown, open, segments, sender, cause
  from dispatcher.choice_figures;
create or replace view audit.carried_figures as
  select day, revision, hour, routing_version, route, first_choice, channel, cause, tenant, calling_code, messages,
         sender, currency, segments, cost_micros, text_segments
  from dispatcher.carried_figures;
