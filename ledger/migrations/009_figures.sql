-- What finance reports of days that are over. A business day is closed once, some time after its
-- end: what it came to is added up here, and stays when the rows that it came from are dropped.
-- What changes afterwards, such as a late receipt, is a further revision of the day with the
-- differences. So the sum over all revisions of a day is what is known now, and revision 1 alone is
-- what was known when it was closed.

-- One row for each time that a day was looked at. changes is how many rows of figures were written.
create table dispatcher.closings (
  day      date not null, -- as finance calls it, in the time zone
  revision integer not null check (revision > 0),
  zone     text not null,
  from_at  timestamptz not null,
  to_at    timestamptz not null,
  at       timestamptz not null default clock_timestamp(),
  changes  bigint not null,
  primary key (day, revision)
);

-- The figures tell hours apart: hour is when one began, counted from the beginning of the day. tenant
-- and calling_code are those of the message, 0 for none.

-- The first choices of messages that were received within the hour, and how many of those ended
-- without any channel being known to have taken them, or had not ended yet.
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
  segments        bigint not null -- of the messages' texts
);
create index choice_figures_day on dispatcher.choice_figures (day);

-- The attempts that were claimed within the hour, by the reason of the choice.
create table dispatcher.attempt_figures (
  day              date not null,
  revision         integer not null,
  hour             timestamptz not null,
  routing_version  bigint not null,
  route            text not null,
  channel          text not null,
  reason           text not null,
  currency         text not null,
  tenant           text not null,
  calling_code     smallint not null,
  attempts         bigint not null,
  submitted        bigint not null,
  accepted         bigint not null,
  rejected         bigint not null,
  refused          bigint not null,
  throttled        bigint not null,
  unknown          bigint not null,
  unsent           bigint not null,
  pending          bigint not null,
  delivered        bigint not null,
  undelivered      bigint not null,
  no_receipt       bigint not null,
  segments         bigint not null,
  cost_micros      bigint not null,
  unknown_segments bigint not null,
  unknown_micros   bigint not null,
  delivered_segments bigint not null, -- of the delivered attempts, as their price
  delivered_micros   bigint not null
);
create index attempt_figures_day on dispatcher.attempt_figures (day);

-- The messages that a channel accepted within the hour, by their first choice, and why another
-- channel than that carried them.
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
  messages        bigint not null
);
create index carried_figures_day on dispatcher.carried_figures (day);

create view audit.closings as
  select day, revision, zone, from_at, to_at, at, changes from dispatcher.closings;
create view audit.choice_figures as
  select day, revision, hour, routing_version, route, channel, tenant, calling_code, messages,
         rejected, failed, unknown, open, segments
  from dispatcher.choice_figures;
create view audit.attempt_figures as
  select day, revision, hour, routing_version, route, channel, reason, currency, tenant, calling_code,
         attempts, submitted, accepted, rejected, refused, throttled, unknown, unsent, pending, delivered,
         undelivered, no_receipt, segments, cost_micros, unknown_segments, unknown_micros,
         delivered_segments, delivered_micros
  from dispatcher.attempt_figures;
create view audit.carried_figures as
  select day, revision, hour, routing_version, route, first_choice, channel, cause, tenant, calling_code, messages
  from dispatcher.carried_figures;
