-- The login beside the author, as in audit.ambiguous, for the explanation of a message.
create or replace view facts.ambiguous as
  select message_seq, attempt, last, step, opened_at, until, next_at, asked, closed_at, verdict,
    author,
    case when has_table_privilege('dispatcher.ambiguous'::regclass, 'select') then note
      else '' end as note,
    coalesce(login, '') as login
  from dispatcher.ambiguous;
