-- Receipts: what providers say later about what they took; and submissions of which nobody knows
-- whether the provider took them.

-- receipt_rank orders what receipts say: what has a higher rank replaces what has a lower one, and
-- nothing replaces delivered.
create function dispatcher.receipt_rank(state text) returns integer
language sql immutable parallel safe
return case state when 'delivered' then 3 when 'undelivered' then 2 when 'pending' then 1 else 0 end;

-- One row per part of a message that a receipt is expected for, or came for. Whichever of
-- settlement and receipt is first makes it, and the other completes it: message_seq and attempt are null
-- while no settlement has named the reference, and state is expected while no receipt has. part counts
-- the references of the settlement from 1; it is null for a row that a receipt made which carried our own key.
-- received_at is by the database's clock. No reference of a provider holds a space: one that begins with
-- a space stands for a receipt without reference, and one with a space further on for a reference that another
-- message had first and still waits under.
--
-- due_at is when somebody has to look at the row: when no receipt came in time, at once when one came before
-- its settlement. A row with it has look_at, too, or stands in awaited under its message. Nearly every receipt
-- comes in time, so only look_at is in an index.
--
-- A row is written once by its settlement and once or twice by its receipts. These change no column of an
-- index, and more than half of each page is left for them: their updates stay on the page and touch no index.
-- early_since is received_at while the message is not known.
create table dispatcher.receipts (
  channel     text collate "C" not null,
  reference   text collate "C" not null,
  message_seq bigint,
  attempt     smallint,
  part        smallint check (part > 0),
  state       text not null default 'expected' check (state in ('expected', 'pending', 'undelivered', 'delivered')),
  cause       text,
  code        text,
  received_at timestamptz,
  due_at      timestamptz,
  look_at     timestamptz,
  early_since timestamptz generated always as (case when message_seq is null then received_at end) stored,
  primary key (channel, reference),
  constraint receipts_attempt check ((message_seq is null) = (attempt is null)),
  constraint receipts_part check (part is null or message_seq is not null),
  constraint receipts_due_at check (due_at is null or message_seq is not null),
  constraint receipts_look_at check (look_at is null or due_at is not null),
  constraint receipts_received_at check ((received_at is null) = (state = 'expected')),
  constraint receipts_cause check (cause is null or state = 'undelivered')
) with (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.1);
create index receipts_message_seq on dispatcher.receipts (message_seq) where message_seq is not null;
create index receipts_look_at on dispatcher.receipts (look_at) where look_at is not null;
create index receipts_early on dispatcher.receipts (early_since) where early_since is not null;

-- One row per settlement and time at which receipts that it expects are due, with the messages. When
-- that time has come, those of their rows that are due by then are given their look_at, and the row is deleted.
-- It may name messages that have no such row.
create table dispatcher.awaited (
  due_at timestamptz not null,
  seqs   bigint[] not null
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.1);
create index awaited_due_at on dispatcher.awaited (due_at);

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

-- named_attempts are attempts that receipts name by our key, by their position, if they are on the
-- channel that the receipt came from, with the reference that such a receipt without one is about.
-- Several references are as good as none. The numbers are given to the planner as constants, so
-- that it looks at no other day.
create function dispatcher.named_attempts(seqs bigint[], attempts smallint[], channels text[])
returns table (nr bigint, reference text)
language plpgsql stable
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
    select g.nr, (
        select case when count(distinct n) = 1 and coalesce(a.receipts_owed, 1) = 1 then min(n)
          else ' ' || a.message_seq || '.' || a.attempt end
        from unnest(string_to_array(a.provider_reference, ' ')) as n where n <> '')
    from unnest(seqs, attempts, channels) with ordinality as g(seq, attempt, channel, nr)
    join dispatcher.attempts a on a.message_seq = g.seq and a.attempt = g.attempt
      and a.channel = g.channel
    where a.message_seq = any(seqs);
end
$$;
