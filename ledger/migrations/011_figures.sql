-- What finance keeps of days that are over: figures of closed days, and results of comparing the
-- ledger with invoices.
--
-- A business day is closed once, some time after its end. Its figures are stored then, and stay
-- when its messages are dropped. Later changes, such as a late receipt, are stored as a further
-- revision with the differences. So the sum over all revisions of a day is what is known now, and
-- revision 1 is what was known when the day was closed.

-- One row per revision of a day.
create table dispatcher.closings (
  day      date not null, -- the business day, in the time zone
  revision integer not null check (revision > 0),
  zone     text not null,
  from_at  timestamptz not null,
  to_at    timestamptz not null,
  at       timestamptz not null default clock_timestamp(),
  changes  bigint not null, -- rows of figures in this revision
  -- 2. Closings of builds without choice_figures.cause and carried_figures.text_segments have 1, and
  -- nothing in these columns.
  figures  smallint not null default 2,
  primary key (day, revision)
);

-- In all figures, hour is the beginning of an hour, counted from the beginning of the day. sender,
-- tenant and calling_code are those of the message; calling_code 0 is none.

-- Messages received in the hour, by their first choice.
create table dispatcher.choice_figures (
  day             date not null,
  revision        integer not null,
  hour            timestamptz not null,
  routing_version bigint not null,
  route           text not null,
  channel         text not null,
  tenant          text not null,
  calling_code    smallint not null,
  messages        bigint not null,
  rejected        bigint not null,
  failed          bigint not null,
  unknown         bigint not null,
  open            bigint not null,
  segments        bigint not null, -- of their texts
  sender          text not null default '',
  -- Why no channel is known to have taken the messages of the row: rejected, opted_out, failed,
  -- expired, cancelled, no_channel, no_answer, or open if they have not ended. Empty if one did.
  cause           text not null default ''
);
create index choice_figures_day on dispatcher.choice_figures (day);

-- Attempts claimed in the hour, by their reason.
create table dispatcher.attempt_figures (
  day                date not null,
  revision           integer not null,
  hour               timestamptz not null,
  routing_version    bigint not null,
  route              text not null,
  channel            text not null,
  reason             text not null,
  currency           text not null,
  tenant             text not null,
  calling_code       smallint not null,
  attempts           bigint not null,
  submitted          bigint not null,
  accepted           bigint not null,
  rejected           bigint not null,
  refused            bigint not null,
  throttled          bigint not null,
  unknown            bigint not null,
  unsent             bigint not null,
  pending            bigint not null,
  delivered          bigint not null,
  undelivered        bigint not null,
  no_receipt         bigint not null,
  segments           bigint not null,
  cost_micros        bigint not null,
  unknown_segments   bigint not null,
  unknown_micros     bigint not null,
  delivered_segments bigint not null, -- of the delivered attempts, as is delivered_micros
  delivered_micros   bigint not null,
  sender             text not null default ''
);
create index attempt_figures_day on dispatcher.attempt_figures (day);

-- Messages that a channel accepted in the hour, by their first choice and by why another channel
-- carried them.
create table dispatcher.carried_figures (
  day             date not null,
  revision        integer not null,
  hour            timestamptz not null,
  routing_version bigint not null,
  route           text not null,
  first_choice    text not null,
  channel         text not null,
  cause           text not null,
  tenant          text not null,
  calling_code    smallint not null,
  messages        bigint not null,
  sender          text not null default '',
  currency        text not null default '',
  segments        bigint not null default 0, -- of the accepted attempts: what the channel billed
  cost_micros     bigint not null default 0,
  text_segments   bigint not null default 0  -- of the messages' texts
);
create index carried_figures_day on dispatcher.carried_figures (day);

create view audit.closings as
  select day, revision, zone, from_at, to_at, at, changes, figures from dispatcher.closings;
create view audit.choice_figures as
  select day, revision, hour, routing_version, route, channel, tenant, calling_code, messages,
    rejected, failed, unknown, open, segments, sender, cause
  from dispatcher.choice_figures;
create view audit.attempt_figures as
  select day, revision, hour, routing_version, route, channel, reason, currency, tenant,
    calling_code, attempts, submitted, accepted, rejected, refused, throttled, unknown, unsent,
    pending, delivered, undelivered, no_receipt, segments, cost_micros, unknown_segments,
    unknown_micros, delivered_segments, delivered_micros, sender
  from dispatcher.attempt_figures;
create view audit.carried_figures as
  select day, revision, hour, routing_version, route, first_choice, channel, cause, tenant,
    calling_code, messages, sender, currency, segments, cost_micros, text_segments
  from dispatcher.carried_figures;

-- Results of comparing the ledger with an invoice or a log of a provider. A result is stored when
-- somebody signs it off, and never changes. It holds no number: while the lines of a file are
-- compared, they are in a temporary table with a keyed hash in place of the number.
create table dispatcher.reconciliations (
  id          bigint generated always as identity primary key,
  channel     text not null,
  file_digest text not null check (file_digest ~ '^[0-9a-f]{64}$'), -- SHA-256 of the file
  from_at     timestamptz not null,
  to_at       timestamptz not null,
  -- The same file is stored once more for the same time only if it settled ambiguous submissions
  -- since.
  revision    integer not null check (revision > 0),
  complete    boolean not null, -- the author said that the file has everything of that time
  at          timestamptz not null default clock_timestamp(),
  author      text not null check (author <> ''),
  login       text not null default session_user, -- the database user; the author is a name given
  reason      text not null,
  lines       bigint not null,
  matched     bigint not null,
  ours_only   bigint not null, -- these three count rows of reconciliation_differences
  theirs_only bigint not null,
  differences bigint not null,
  ambiguous   bigint not null,
  resolved    bigint not null, -- ambiguous submissions that were settled
  unique (channel, file_digest, from_at, to_at, revision)
);

create table dispatcher.reconciliation_totals (
  reconciliation bigint not null references dispatcher.reconciliations,
  currency       text not null,
  ours_micros    bigint not null,
  theirs_micros  bigint, -- null if the file has no price in this currency
  primary key (reconciliation, currency)
);

create table dispatcher.reconciliation_differences (
  reconciliation bigint not null references dispatcher.reconciliations,
  kind           text not null,
  message_id     text,    -- null, as attempt, for what only the file has
  attempt        smallint,
  line           integer, -- null, as reference, for what only the ledger has
  reference      text,
  at             timestamptz,
  ours           text not null, -- the two values; an amount is a decimal number of currency
  theirs         text not null,
  currency       text not null,
  constraint reconciliation_differences_kind_check check (kind in ('ours_only', 'theirs_only',
    'duplicate', 'segments', 'price', 'currency', 'outcome'))
);
create index reconciliation_differences_of on dispatcher.reconciliation_differences
  (reconciliation);

-- Finance signs results off by inserting into these views.
create view audit.reconciliations as
  select id, channel, file_digest, from_at, to_at, revision, complete, at, author, login, reason,
    lines, matched, ours_only, theirs_only, differences, ambiguous, resolved
  from dispatcher.reconciliations;
create view audit.reconciliation_totals as
  select reconciliation, currency, ours_micros, theirs_micros from dispatcher.reconciliation_totals;
create view audit.reconciliation_differences as
  select reconciliation, kind, message_id, attempt, line, reference, at, ours, theirs, currency
  from dispatcher.reconciliation_differences;
