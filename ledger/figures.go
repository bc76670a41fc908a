package ledger

import (
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// BusinessDay is a day in the reports: from midnight to midnight in a time zone.
type BusinessDay struct {
	Date     string    // 2026-11-21
	Zone     string    // such as Europe/London
	From, To time.Time // in that zone
}

// NewBusinessDay returns the day that contains an instant.
func NewBusinessDay(at time.Time, zone *time.Location) BusinessDay {
	return BusinessDay{
		Date: at.In(zone).Format(time.DateOnly), Zone: zone.String(),
		From: admission.Day.Start(at, zone).In(zone), To: admission.Day.End(at, zone).In(zone),
	}
}

// billedSegments are the segments of attempt a that are certainly billed. For an unknown attempt
// these are the parts that were accepted before an answer was missing, each under a reference of
// its own.
const billedSegments = `(case when a.outcome = 'unknown' then least(
	  coalesce(cardinality(string_to_array(a.provider_reference, ' ')), 0), a.segments)
	when a.outcome is not null then a.segments else 0 end)`

// billedMicros is their price. Every segment of an attempt costs the same.
const billedMicros = `(case when a.outcome is null or a.segments = 0 then 0
	else a.price_micros / a.segments * ` + billedSegments + ` end)`

// dayRows adds up messages and attempts from @from to @to, so that each message and each attempt is
// read and joined once for all figures. Messages received in that time have numbers between @low
// and @high. The figures are divided by hour (counted from @from), tenant, calling code and sender
// where @by_hour, @by_tenant, @by_country and @by_sender ask for it. A row has figures of several
// kinds, so for one kind there may be several rows with the same key.
//
//   - "drawn" counts messages with a first choice that were received in that time, by
//     received_hour. Each is counted on the row of its first attempt, or on a row without attempt.
//     "ended" is why no channel is known to have taken them.
//   - "attempts" counts the attempts that were claimed in that time, by claimed_hour. The first
//     part of the union has attempts of messages with numbers in between; those claimed at other
//     times count nothing. The second part has the few others. They are found by the index on
//     claimed_at, and belong to messages before @next, which is the first number of a day: with a
//     bound within a day the planner would read the index on the numbers up to it.
//   - "carried" counts messages with an attempt that was claimed in that time and that the channel
//     accepted. A message whose parts were accepted in several attempts counts with the first of
//     these, and its segments and money with each.
//
// For messages that another channel than the first choice carried, two attempts are looked up by
// the primary key: g is the attempt with which the message left its first choice, b the last
// attempt on the first choice before that. When the first choice was not tried, the reason is in
// the ranking of g: its first entry is the draw's first choice, fields are separated by spaces, and
// the reason is the last field (decide.AppendRanking).
//
// With "offset 0" the columns of d are computed once for each row, not for each sum.
const dayRows = `
	select case when @by_hour::boolean and drawn
	    then date_bin('1 hour', received_at, @from::timestamptz) end as received_hour,
	  case when @by_hour and made
	    then date_bin('1 hour', claimed_at, @from) end as claimed_hour,
	  routing_version, route, first_choice, channel, reason, currency,
	  case when @by_tenant::boolean then tenant else '' end as tenant,
	  case when @by_country::boolean then calling_code else 0::smallint end as calling_code,
	  case when @by_sender::boolean then sender else '' end as sender,
	  cause, ended,
	  count(*) filter (where drawn) as drawn,
	  count(*) filter (where drawn and state = 'rejected') as drawn_rejected,
	  count(*) filter (where drawn and state = 'failed') as drawn_failed,
	  count(*) filter (where drawn and state = 'unknown') as drawn_unknown,
	  count(*) filter (where drawn and ended = 'open') as drawn_open,
	  coalesce(sum(text_segments) filter (where drawn), 0)::bigint as drawn_segments,
	  count(*) filter (where made) as attempts,
	  count(*) filter (where made and outcome <> 'refused') as submitted,
	  count(*) filter (where made and outcome = 'accepted') as accepted,
	  count(*) filter (where made and outcome = 'rejected') as rejected,
	  count(*) filter (where made and outcome = 'refused' and not is_unsent) as refused,
	  count(*) filter (where made and outcome = 'throttled') as throttled,
	  count(*) filter (where made and outcome = 'unknown') as unknown,
	  count(*) filter (where made and is_unsent) as unsent,
	  count(*) filter (where made and outcome is null) as pending,
	  count(*) filter (where made and is_delivered) as delivered,
	  count(*) filter (where made and outcome = 'accepted'
	    and receipt_state = 'undelivered') as undelivered,
	  count(*) filter (where made and outcome = 'accepted'
	    and receipt_state = 'no_receipt') as no_receipt,
	  coalesce(sum(billed_segments) filter (where made), 0)::bigint as segments,
	  coalesce(sum(billed_micros) filter (where made), 0)::bigint as cost_micros,
	  coalesce(sum(segments - billed_segments)
	    filter (where made and outcome = 'unknown'), 0)::bigint as unknown_segments,
	  coalesce(sum(price_micros - billed_micros)
	    filter (where made and outcome = 'unknown'), 0)::bigint as unknown_micros,
	  coalesce(sum(segments) filter (where made and is_delivered), 0)::bigint as delivered_segments,
	  coalesce(sum(price_micros) filter (where made and is_delivered), 0)::bigint
	    as delivered_micros,
	  count(*) filter (where made and carries and first_part) as carried,
	  coalesce(sum(segments) filter (where made and carries), 0)::bigint as carried_segments,
	  coalesce(sum(price_micros) filter (where made and carries), 0)::bigint as carried_micros,
	  coalesce(sum(text_segments) filter (where made and carries and first_part), 0)::bigint
	    as carried_text
	from (
	  select coalesce(a.routing_version, 0) as routing_version, coalesce(a.route, '') as route,
	    coalesce(a.first_choice, '') as first_choice, coalesce(a.channel, '') as channel,
	    coalesce(a.reason, '') as reason, coalesce(a.currency, '') as currency, a.tenant,
	    coalesce(a.calling_code, 0::smallint) as calling_code, coalesce(a.sender, '') as sender,
	    a.state, a.received_at, a.text_segments, a.claimed_at, a.outcome, a.segments,
	    a.price_micros, a.receipt_state, drawn, made, carries,
	    ` + isUnsent + ` as is_unsent,
	    a.outcome = 'accepted' and a.receipt_state = 'delivered' as is_delivered,
	    ` + billedSegments + ` as billed_segments,
	    ` + billedMicros + ` as billed_micros,
	    case
	      when not drawn then ''
	      when a.state = 'rejected' then
	        case when a.end_reason = 'opted_out' then a.end_reason else 'rejected' end
	      when a.state = 'failed' then case
	        when a.end_reason in ('expired', 'cancelled', 'no_channel') then a.end_reason
	        else 'failed' end
	      when a.state = 'unknown' then 'no_answer'
	      when a.state in ('scheduled', 'waiting', 'retry') then 'open'
	      -- The state of a message that was simply accepted stays sending; see message_states.
	      when a.state <> 'sending' then ''
	      when a.outcome = 'accepted' then ''
	      when a.attempts > 1 and exists (select from facts.stored_attempts e
	        where e.message_seq = a.seq and e.outcome = 'accepted') then ''
	      else 'open' end as ended,
	    a.attempt = 1 or carries and not exists (select from facts.stored_attempts e
	      where e.message_seq = a.seq and e.attempt < a.attempt
	        and e.channel = a.channel and e.outcome = 'accepted') as first_part,
	    case when carries and a.channel <> a.first_choice then (
	      select case
	        when a.reason = 'no_receipt' then a.reason
	        -- It was found out after the message had been sent once more.
	        when b.outcome = 'accepted' then 'unknown'
	        when b.outcome = 'refused' and b.provider_code = 'breaker_open' then 'breaker_open'
	        else coalesce(b.outcome, substring(g.ranking ->> 'line'
	          from '^[^,]* ([^ ,]+)'), g.reason, '')
	        end
	      from (
	        select e.message_seq, e.attempt, e.ranking, e.reason, a.first_choice
	        from facts.stored_attempts e
	        where e.message_seq = a.seq and e.channel <> a.first_choice
	        order by e.attempt limit 1) g
	      left join lateral (
	        select a.outcome, a.provider_code from facts.stored_attempts a
	        where a.message_seq = g.message_seq and a.channel = g.first_choice
	          and a.attempt < g.attempt and not ` + isUnsent + `
	        order by a.attempt desc limit 1) b on true) else '' end as cause
	  from (
	    select m.seq, m.routing_version, m.route, m.first_choice, m.tenant, m.calling_code, m.sender,
	      m.state, m.reason as end_reason, m.received_at, m.segments as text_segments, m.attempts,
	      a.attempt, a.channel, a.reason, a.claimed_at, a.outcome, a.segments, a.price_micros,
	      a.currency, a.provider_reference, a.provider_code, a.receipt_state
	    from facts.stored_messages m
	    left join facts.attempts a on a.message_seq = m.seq
	      and a.message_seq > @low and a.message_seq < @high
	    where m.seq > @low and m.seq < @high
	    union all
	    select m.seq, m.routing_version, m.route, m.first_choice, m.tenant, m.calling_code, m.sender,
	      m.state, m.reason, m.received_at, m.segments, m.attempts,
	      a.attempt, a.channel, a.reason, a.claimed_at, a.outcome, a.segments, a.price_micros,
	      a.currency, a.provider_reference, a.provider_code, a.receipt_state
	    from facts.attempts a
	    cross join lateral (select * from facts.stored_messages s where s.seq = a.message_seq
	      offset 0) m
	    where a.message_seq < @next and (a.message_seq <= @low or a.message_seq >= @high)
	      and a.claimed_at >= @from and a.claimed_at < @to
	  ) a
	  cross join lateral (select
	    a.first_choice is not null and a.received_at >= @from and a.received_at < @to
	      and coalesce(a.attempt, 1) = 1 as drawn,
	    coalesce(a.claimed_at >= @from and a.claimed_at < @to, false) as made,
	    a.outcome = 'accepted' and a.route is not null and a.first_choice is not null
	      and a.routing_version is not null as carries
	  ) c
	  offset 0
	) d
	group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13`

// parameters are the parameters of dayRows.
func (d *BusinessDay) parameters(low, high int64, by Split) pgx.NamedArgs {
	return pgx.NamedArgs{
		"from": d.From, "to": d.To, "low": low, "high": high, "next": (DayOf(high) + 1).first(),
		"by_hour": by.Hour, "by_tenant": by.Tenant, "by_country": by.CallingCode,
		"by_sender": by.Sender,
	}
}
