package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// Reports are figures over many messages. Their queries wait for nothing that is claimed or
// settled.
type Reports struct{ *db }

// DailyRow is what one channel did for one route on one business day, in one currency.
type DailyRow struct {
	Route, Channel string
	// FirstChoice counts the messages received on the day whose draw picked this channel,
	// whatever became of them. Its share is what was agreed with the provider. It is given in
	// one row of a route and channel even if attempts were made in several currencies.
	FirstChoice int64

	// The rest counts attempts claimed on the day, however old their messages are.

	Fallback  int64 // attempts that went here because an earlier candidate could not take them
	Attempts  int64 // all attempts
	Submitted int64 // all but those refused, which certainly were not taken, and those pending
	Accepted  int64
	Delivered int64 // accepted ones whose receipts say so
	Rejected  int64
	Refused   int64 // by the channel or its provider
	Throttled int64
	Unknown   int64
	// refused on this side before anything left, which says nothing about the channel
	Unsent  int64
	Pending int64

	// Segments and CostMicros are what was accepted, hence billed.
	Segments   int64
	CostMicros int64
	// UnknownSegments and UnknownMicros may have been accepted too: no answer came.
	UnknownSegments int64
	UnknownMicros   int64
	Currency        string // ISO 4217; empty when no attempt was made

	// Undelivered are the accepted ones whose receipts say that they never will be delivered,
	// NoReceipt those that none came for in time. What is neither of them nor Delivered has no last
	// word yet, or expects none.
	Undelivered int64
	NoReceipt   int64
}

// Failed counts the attempts that ended without the channel taking the message.
func (r *DailyRow) Failed() int64 { return r.Rejected + r.Refused + r.Throttled }

// certain are the segments of attempt a that are on the bill for sure: of an unknown one those
// parts that were accepted before the rest got no answer, each under a reference of its own.
const certain = `(case when a.outcome = 'unknown' then least(
	  coalesce(cardinality(string_to_array(a.provider_reference, ' ')), 0), a.segments)
	when a.outcome is not null then a.segments else 0 end)`

// certainCost is their price; every segment of an attempt costs the same.
const certainCost = `(case when a.outcome is null or a.segments = 0 then 0
	else a.price_micros / a.segments * ` + certain + ` end)`

// daily joins what the draws picked with what was tried. Both sides reach their rows
// through an index on time.
const daily = `
	with drawn as (
	  select coalesce(route, '') as route, first_choice as channel, count(*) as first_choice
	  from dispatcher.messages
	  where seq > $3 and seq < $4 and received_at >= $1 and received_at < $2
	    and first_choice is not null
	  group by 1, 2
	), tried as (
	  select coalesce(m.route, '') as route, a.channel, a.currency,
	    count(*) filter (where a.reason = 'fallback') as fallback,
	    count(*) as attempts,
	    count(*) filter (where a.outcome <> 'refused') as submitted,
	    count(*) filter (where a.outcome = 'accepted') as accepted,
	    count(*) filter (where a.outcome = 'accepted'
	      and a.receipt_state = 'delivered') as delivered,
	    count(*) filter (where a.outcome = 'rejected') as rejected,
	    count(*) filter (where a.outcome = 'refused' and not ` + isUnsent + `) as refused,
	    count(*) filter (where a.outcome = 'throttled') as throttled,
	    count(*) filter (where a.outcome = 'unknown') as unknown,
	    count(*) filter (where ` + isUnsent + `) as unsent,
	    count(*) filter (where a.outcome is null) as pending,
	    sum(` + certain + `) as segments,
	    sum(` + certainCost + `) as cost,
	    sum(a.segments - ` + certain + `) filter (where a.outcome = 'unknown') as unknown_segments,
	    sum(a.price_micros - ` + certainCost + `)
	      filter (where a.outcome = 'unknown') as unknown_cost,
	    count(*) filter (where a.outcome = 'accepted'
	      and a.receipt_state = 'undelivered') as undelivered,
	    count(*) filter (where a.outcome = 'accepted'
	      and a.receipt_state = 'no_receipt') as no_receipt
	  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq
	  where a.message_seq < $4 and a.claimed_at >= $1 and a.claimed_at < $2
	  group by 1, 2, 3
	), numbered as (
	  select *, row_number() over (partition by route, channel order by currency) as nr from tried
	)
	select coalesce(d.route, t.route), coalesce(d.channel, t.channel), coalesce(d.first_choice, 0),
	  coalesce(t.fallback, 0), coalesce(t.attempts, 0), coalesce(t.submitted, 0),
	    coalesce(t.accepted, 0),
	  coalesce(t.delivered, 0), coalesce(t.rejected, 0), coalesce(t.refused, 0),
	    coalesce(t.throttled, 0),
	  coalesce(t.unknown, 0), coalesce(t.unsent, 0), coalesce(t.pending, 0),
	    coalesce(t.segments, 0), coalesce(t.cost, 0)::bigint,
	  coalesce(t.unknown_segments, 0), coalesce(t.unknown_cost, 0)::bigint,
	    coalesce(t.currency, ''),
	  coalesce(t.undelivered, 0), coalesce(t.no_receipt, 0)
	from drawn d full join (select * from numbered where nr = 1) t on t.route = d.route
	  and t.channel = d.channel

	union all
	select route, channel, 0, fallback, attempts, submitted, accepted, delivered, rejected,
	  refused, throttled, unknown, unsent, pending,
	  coalesce(segments, 0), coalesce(cost, 0)::bigint, coalesce(unknown_segments, 0),
	    coalesce(unknown_cost, 0)::bigint, currency, undelivered, no_receipt
	from numbered where nr > 1
	order by 1, 2, 19`

// Daily counts one business day: from midnight to midnight in zone around day. Rows are
// sorted by route, channel and currency.
func (s *Reports) Daily(
	ctx context.Context, day time.Time, zone *time.Location,
) ([]DailyRow, error) {
	from, to := admission.Day.Start(day, zone), admission.Day.End(day, zone)
	low, high, err := s.seekRange(ctx, from, to)
	if err != nil {
		return nil, err
	}
	out, err := rows(ctx, s.db, pgx.RowToStructByPos[DailyRow], daily, from, to, low, high)
	return out, wrap("report day", err)
}

// Totals is the whole ledger in numbers.
type Totals struct {
	// Messages counts by state.
	Messages map[State]int64
	// PossibleDuplicates counts messages that were sent once more after an unknown outcome.
	PossibleDuplicates int64
	// Channels has one entry for each channel with attempts or first choices, by name.
	Channels []ChannelTotal
}

// ChannelTotal is one channel over all days.
type ChannelTotal struct {
	Channel     string
	FirstChoice int64 // messages whose draw picked it
	Fallback    int64 // attempts
	Attempts    int64
	Accepted    int64
	Unknown     int64
	Segments    int64  // accepted
	CostMicros  int64  // accepted
	Currency    string // the smallest by name, if there are several
}

// Totals reads every row of messages and attempts: it is meant for the end of a demo
// or a test, not for a dashboard.
func (s *Reports) Totals(ctx context.Context) (Totals, error) {
	t := Totals{Messages: map[State]int64{}}
	r, err := s.reports.Query(ctx, `
		select state, count(*), count(*) filter (where possible_duplicate)
		from dispatcher.message_states group by state`)
	if err != nil {
		return Totals{}, wrap("count messages", err)
	}
	var state State
	var n, twice int64
	if _, err = pgx.ForEachRow(r, []any{&state, &n, &twice}, func() error {
		t.Messages[state] = n
		t.PossibleDuplicates += twice
		return nil
	}); err != nil {
		return Totals{}, wrap("count messages", err)
	}
	t.Channels, err = rows(ctx, s.db, pgx.RowToStructByPos[ChannelTotal], `
		with drawn as (
		  select first_choice as channel, count(*) as first_choice
		  from dispatcher.messages where first_choice is not null group by 1
		), tried as (
		  select channel, count(*) filter (where reason = 'fallback') as fallback,
		    count(*) as attempts,
		    count(*) filter (where outcome = 'accepted') as accepted,
		      count(*) filter (where outcome = 'unknown') as unknown,
		    sum(segments) filter (where outcome <> 'unknown') as segments,
		    sum(price_micros) filter (where outcome <> 'unknown') as cost, min(currency) as currency
		  from dispatcher.attempts group by 1
		)
		select channel, coalesce(first_choice, 0), coalesce(fallback, 0), coalesce(attempts, 0),
		  coalesce(accepted, 0),
		  coalesce(unknown, 0), coalesce(segments, 0), coalesce(cost, 0)::bigint,
		    coalesce(currency, '')
		from drawn full join tried using (channel) order by channel`)
	return t, wrap("count attempts", err)
}

// ChoiceRow counts the messages whose draw picked one channel under one routing version.
type ChoiceRow struct {
	Version     int64
	Route       string
	Channel     string
	FirstChoice int64
	// Rejected, Failed and Unknown are those of them that ended without any channel being known to
	// have taken them, Open those that have not ended: waiting, scheduled, or under way.
	Rejected, Failed, Unknown, Open int64
}

// Choices splits the first choices of one business day, as Daily cuts it, by routing
// version: the weights of a day whose routing was changed are those of its versions, each
// for the messages chosen under it. Rows are sorted by version, route and channel.
func (s *Reports) Choices(
	ctx context.Context, day time.Time, zone *time.Location,
) ([]ChoiceRow, error) {
	from, to := admission.Day.Start(day, zone), admission.Day.End(day, zone)
	low, high, err := s.seekRange(ctx, from, to)
	if err != nil {
		return nil, err
	}
	out, err := rows(ctx, s.db, pgx.RowToStructByPos[ChoiceRow], `
		select routing_version, route, first_choice, count(*),
		  count(*) filter (where state = 'rejected'), count(*) filter (where state = 'failed'),
		  count(*) filter (where state = 'unknown'),
		  count(*) filter (where state in ('scheduled', 'waiting', 'retry', 'sending'))
		from dispatcher.message_states
		where seq > $3 and seq < $4 and received_at >= $1 and received_at < $2
		  and first_choice is not null
		group by 1, 2, 3 order by 1, 2, 3`, from, to, low, high)
	return out, wrap("report choices", err)
}

// CarriedRow counts the messages that one channel carried for one route: those of which it
// accepted an attempt that was claimed on the day. A message counts once for each channel that
// accepted it, and belongs to the version that it was planned under.
type CarriedRow struct {
	Version     int64
	Route       string
	FirstChoice string
	Channel     string
	// Cause is why the first choice did not carry these messages; empty where it did. It is the
	// reason for which it was passed over when a message first went elsewhere or, where it had been
	// tried before, what came of that: refused, throttled, unknown, or breaker_open.
	Cause    string
	Messages int64
}

// carriedOn walks the attempts of the day by the index on claimed_at, as Daily does. A message that
// a channel accepted in several attempts, because its parts went one after the other, counts with
// the first of them. Only what another channel than the first choice carried is looked up again by
// the primary key: g is the attempt with which the message left its first choice, b what had come
// of that before.
//
// Where the first choice was not tried at all, its reason stands with g: a ranking lists the draw's
// first choice in front, its fields between spaces, the reason last (decide.AppendRanking).
//
// The offset keeps the look at earlier attempts out of the join. It would be the larger part of its
// cost, and without statistics the planner would not see how much worse one join is than another.
const carriedOn = `
	with carried as (
	  select m.routing_version, m.route, m.first_choice, a.channel, a.message_seq, a.attempt
	  from dispatcher.attempts a join dispatcher.messages m on m.seq = a.message_seq
	  where a.message_seq < $3 and a.claimed_at >= $1 and a.claimed_at < $2
	    and a.outcome = 'accepted'
	    and m.route is not null and m.first_choice is not null and m.routing_version is not null
	  offset 0
	), accepted as (
	  select * from carried a
	  where a.attempt = 1 or not exists (select from dispatcher.attempts e
	    where e.message_seq = a.message_seq
	    and e.attempt < a.attempt and e.channel = a.channel and e.outcome = 'accepted')
	), explained as (
	  select c.routing_version, c.route, c.first_choice, c.channel,
	    case
	      when c.channel = c.first_choice then ''
	      -- It was found out after the message had been sent once more.
	      when b.outcome = 'accepted' then 'unknown'
	      when b.outcome = 'refused' and b.provider_code = 'breaker_open' then 'breaker_open'
	      else coalesce(b.outcome, substring(g.ranking ->> 'line'
	      from '^[^,]* ([^ ,]+)'), g.reason, '')
	    end as cause
	  from accepted c
	  left join lateral (
	    select e.attempt, e.ranking, e.reason from dispatcher.attempts e
	    where c.channel <> c.first_choice and e.message_seq = c.message_seq
	      and e.channel <> c.first_choice
	    order by e.attempt limit 1) g on true
	  left join lateral (
	    select a.outcome, a.provider_code from dispatcher.attempts a
	    where a.message_seq = c.message_seq and a.channel = c.first_choice and a.attempt < g.attempt
	      and not ` + isUnsent + `
	    order by a.attempt desc limit 1) b on true
	)
	select routing_version, route, first_choice, channel, cause, count(*)
	from explained group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5`

// CarriedOn counts what the channels carried on one business day, as Daily cuts it. Rows are sorted
// by version, route, first choice, channel and cause.
func (s *Reports) CarriedOn(
	ctx context.Context, day time.Time, zone *time.Location,
) ([]CarriedRow, error) {
	from, to := admission.Day.Start(day, zone), admission.Day.End(day, zone)
	_, high, err := s.seek(ctx, to)
	if err != nil {
		return nil, err
	}
	out, err := rows(ctx, s.db, pgx.RowToStructByPos[CarriedRow], carriedOn, from, to, high)
	return out, wrap("report what was carried", err)
}
