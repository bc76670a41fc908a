-- What came of comparing the ledger with an invoice or a log of a provider. A result is added when
-- somebody signs it off, and never changed. It holds no number: lines of a file are kept in a
-- temporary table while they are compared, with a keyed hash in place of the number.

-- file_digest is the SHA-256 of the file. The same file for the same time has a further revision
-- only when ambiguous submissions were settled by it meanwhile. complete: whoever signed said that
-- the file has all of the time. login is the one at the database, author the name that was given.
-- ours_only, theirs_only and differences count the rows below, resolved the submissions that were
-- settled.
create table dispatcher.reconciliations (
  id          bigint generated always as identity primary key,
  channel     text not null,
  file_digest text not null check (file_digest ~ '^[0-9a-f]{64}$'),
  from_at     timestamptz not null,
  to_at       timestamptz not null,
  revision    integer not null check (revision > 0),
  complete    boolean not null,
  at          timestamptz not null default clock_timestamp(),
  author      text not null check (author <> ''),
  login       text not null default session_user,
  reason      text not null,
  lines       bigint not null,
  matched     bigint not null,
  ours_only   bigint not null,
  theirs_only bigint not null,
  differences bigint not null,
  ambiguous   bigint not null,
  resolved    bigint not null,
  unique (channel, file_digest, from_at, to_at, revision)
);

-- theirs_micros is null where the file has no price in the currency.
create table dispatcher.reconciliation_totals (
  reconciliation bigint not null references dispatcher.reconciliations,
  currency       text not null,
  ours_micros    bigint not null,
  theirs_micros  bigint,
  primary key (reconciliation, currency)
);

-- One row for each difference. message_id and attempt are null for what only the file has, line and
-- reference for what only the ledger has. ours and theirs are the two values; amounts are decimals
-- of currency.
create table dispatcher.reconciliation_differences (
  reconciliation bigint not null references dispatcher.reconciliations,
  kind           text not null check (kind in ('ours_only', 'theirs_only', 'duplicate', 'segments', 'price',
    'currency', 'outcome')),
  message_id     text,
  attempt        smallint,
  line           integer,
  reference      text,
  at             timestamptz,
  ours           text not null,
  theirs         text not null,
  currency       text not null
);
create index reconciliation_differences_of on dispatcher.reconciliation_differences (reconciliation);

-- Finance signs off through these views: they can be added to, and the rest is as for any view.
create view audit.reconciliations as
  select id, channel, file_digest, from_at, to_at, revision, complete, at, author, login, reason, lines, matched,
         ours_only, theirs_only, differences, ambiguous, resolved
  from dispatcher.reconciliations;
create view audit.reconciliation_totals as
  select reconciliation, currency, ours_micros, theirs_micros from dispatcher.reconciliation_totals;
create view audit.reconciliation_differences as
  select reconciliation, kind, message_id, attempt, line, reference, at, ours, theirs, currency
  from dispatcher.reconciliation_differences;
