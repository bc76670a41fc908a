-- Operators write notes when they settle ambiguous submissions, and people write numbers into them.
-- Only a login that may read the table sees them: finance and auditors read views alone. The
-- columns stay, and are empty for them.
create or replace view audit.ambiguous as
  select m.id as message_id, d.attempt, d.last as last_attempt, a.channel, d.step, d.opened_at, d.until, d.asked,
         d.closed_at, d.verdict, d.author,
         case when has_table_privilege('dispatcher.ambiguous'::regclass, 'select') then d.note else '' end as note
  from dispatcher.ambiguous d
  join dispatcher.messages m on m.seq = d.message_seq
  join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.attempt;

create or replace view facts.ambiguous as
  select message_seq, attempt, last, step, opened_at, until, next_at, asked, closed_at, verdict, author,
    case when has_table_privilege('dispatcher.ambiguous'::regclass, 'select') then note else '' end as note
  from dispatcher.ambiguous;
