-- Submissions of which nobody knows whether the provider took them: how it is tried to find out,
-- until when, and who decided in the end. It only adds.

-- An ambiguity is about one submission, which may have been made in several attempts under the same
-- key: attempt is the first of them and last the latest, which carries the price. account stands for the settings of the
-- channel that it was made with: under others the provider may be another, who does not know the key. step is how it is tried to learn more; until is
-- when that ends, next_at when the next try is due. An open ambiguity has a next_at, a closed one a verdict. One that is
-- closed as final may still be overruled. part_taken: a part of the message is known to have been taken, with or without an id.
create table dispatcher.ambiguous (
  message_seq bigint not null,
  key         text collate "C" not null,
  attempt     smallint not null check (attempt > 0),
  last        smallint not null,
  account     text not null default '',
  step        text not null check (step in ('same_key', 'lookup', 'receipt', 'none')),
  opened_at   timestamptz not null default now(),
  until       timestamptz not null,
  next_at     timestamptz,
  asked       smallint not null default 0 check (asked >= 0),
  closed_at   timestamptz,
  verdict     text check (verdict in ('taken', 'not_taken', 'resent', 'final')),
  author      text not null default '',
  note        text not null default '',
  part_taken  boolean not null default false,
  primary key (message_seq, key),
  constraint ambiguous_last check (last >= attempt),
  constraint ambiguous_closed check ((closed_at is null) = (verdict is null) and (closed_at is null) = (next_at is not null))
);
create index ambiguous_due on dispatcher.ambiguous (next_at) where next_at is not null;
create index ambiguous_final on dispatcher.ambiguous (closed_at) where verdict in ('final', 'resent');

-- The key under which the next attempt of a message repeats its last one, until when, and under which account.
alter table dispatcher.messages
  add column same_key text,
  add column same_key_until timestamptz,
  add column same_key_account text,
  add constraint messages_same_key check ((same_key is null) = (same_key_until is null) and (same_key is null) = (same_key_account is null));

create view audit.ambiguous as
  select m.id as message_id, d.attempt, d.last as last_attempt, a.channel, d.step, d.opened_at, d.until, d.asked,
         d.closed_at, d.verdict, d.author, d.note
  from dispatcher.ambiguous d
  join dispatcher.messages m on m.seq = d.message_seq
  join dispatcher.attempts a on a.message_seq = d.message_seq and a.attempt = d.attempt;
