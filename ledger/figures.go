package ledger

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// BusinessDay is a day as finance reckons it: from midnight to midnight in a time zone.
type BusinessDay struct {
	Date     string // 2026-11-21
	Zone     string // such as Europe/London
	From, To time.Time
}

// NewBusinessDay is the day around an instant.
func NewBusinessDay(at time.Time, zone *time.Location) BusinessDay {
	return BusinessDay{
		Date: at.In(zone).Format(time.DateOnly), Zone: zone.String(),
		From: admission.Day.Start(at, zone), To: admission.Day.End(at, zone),
	}
}

// figureTable is what is added up of a business day, either from the rows of messages and attempts,
// or as it was when the day was closed, with the corrections since. A view of schema audit shows it
// under the same name.
type figureTable struct {
	name string
	// by are the columns that tell its rows apart, sums those that are added up.
	by, sums []string
	// rows is the statement that adds them up, for messages and attempts from @from to @to, which it
	// calls one hour. Messages received then have numbers between @low and @high. Attempts are of
	// messages before @next, where a day begins: a bound within a day would have the index on the
	// numbers read up to it.
	rows string
}

// choiceFigures are Reports.Choices by hour, tenant and calling code.
var choiceFigures = figureTable{
	name: "choice_figures",
	by:   []string{"hour", "routing_version", "route", "channel", "tenant", "calling_code"},
	sums: []string{"messages", "rejected", "failed", "unknown", "open", "segments"},
	rows: `
	select @from::timestamptz as hour,
	  coalesce(routing_version, 0) as routing_version, coalesce(route, '') as route,
	  first_choice as channel, tenant, coalesce(calling_code, 0::smallint) as calling_code,
	  count(*) as messages,
	  count(*) filter (where state = 'rejected') as rejected,
	  count(*) filter (where state = 'failed') as failed,
	  count(*) filter (where state = 'unknown') as unknown,
	  count(*) filter (where state in ('scheduled', 'waiting', 'retry', 'sending')) as open,
	  coalesce(sum(segments), 0) as segments
	from facts.messages
	where seq > @low and seq < @high and received_at >= @from and received_at < @to
	  and first_choice is not null
	group by 2, 3, 4, 5, 6`,
}

// certain are the segments of attempt a that are on the bill for sure: of an unknown one those
// parts that were accepted before the rest got no answer, each under a reference of its own.
const certain = `(case when a.outcome = 'unknown' then least(
	  coalesce(cardinality(string_to_array(a.provider_reference, ' ')), 0), a.segments)
	when a.outcome is not null then a.segments else 0 end)`

// certainCost is their price; every segment of an attempt costs the same.
const certainCost = `(case when a.outcome is null or a.segments = 0 then 0
	else a.price_micros / a.segments * ` + certain + ` end)`

// attemptFigures are Reports.Daily by hour, version, reason, tenant and calling code. The attempts are
// found by the index on claimed_at.
var attemptFigures = figureTable{
	name: "attempt_figures",
	by: []string{
		"hour", "routing_version", "route", "channel", "reason", "currency", "tenant",
		"calling_code",
	},
	sums: []string{
		"attempts", "submitted", "accepted", "rejected", "refused", "throttled", "unknown",
		"unsent", "pending", "delivered", "undelivered", "no_receipt", "segments", "cost_micros",
		"unknown_segments", "unknown_micros", "delivered_segments", "delivered_micros",
	},
	rows: `
	select @from::timestamptz as hour,
	  coalesce(m.routing_version, 0) as routing_version, coalesce(m.route, '') as route,
	  a.channel, a.reason, a.currency, m.tenant,
	  coalesce(m.calling_code, 0::smallint) as calling_code,
	  count(*) as attempts,
	  count(*) filter (where a.outcome <> 'refused') as submitted,
	  count(*) filter (where a.outcome = 'accepted') as accepted,
	  count(*) filter (where a.outcome = 'rejected') as rejected,
	  count(*) filter (where a.outcome = 'refused' and not ` + isUnsent + `) as refused,
	  count(*) filter (where a.outcome = 'throttled') as throttled,
	  count(*) filter (where a.outcome = 'unknown') as unknown,
	  count(*) filter (where ` + isUnsent + `) as unsent,
	  count(*) filter (where a.outcome is null) as pending,
	  count(*) filter (where a.outcome = 'accepted'
	    and a.receipt_state = 'delivered') as delivered,
	  count(*) filter (where a.outcome = 'accepted'
	    and a.receipt_state = 'undelivered') as undelivered,
	  count(*) filter (where a.outcome = 'accepted'
	    and a.receipt_state = 'no_receipt') as no_receipt,
	  sum(` + certain + `) as segments, sum(` + certainCost + `)::bigint as cost_micros,
	  coalesce(sum(a.segments - ` + certain + `) filter (where a.outcome = 'unknown'), 0)
	    as unknown_segments,
	  coalesce(sum(a.price_micros - ` + certainCost + `)
	    filter (where a.outcome = 'unknown'), 0)::bigint as unknown_micros,
	  coalesce(sum(a.segments) filter (where a.outcome = 'accepted'
	    and a.receipt_state = 'delivered'), 0) as delivered_segments,
	  coalesce(sum(a.price_micros) filter (where a.outcome = 'accepted'
	    and a.receipt_state = 'delivered'), 0)::bigint as delivered_micros
	from facts.attempts a join facts.stored_messages m on m.seq = a.message_seq
	where a.message_seq < @next and a.claimed_at >= @from and a.claimed_at < @to
	group by 2, 3, 4, 5, 6, 7, 8`,
}

// carriedFigures are Reports.CarriedOn by hour, tenant and calling code.
//
// The attempts are found by the index on claimed_at. A message that a channel accepted in several
// attempts, because its parts went one after the other, counts with the first of them. Only what
// another channel than the first choice carried is looked up again by the primary key: g is the
// attempt with which the message left its first choice, b what had come of that before.
//
// Where the first choice was not tried at all, its reason stands with g: a ranking lists the draw's
// first choice in front, its fields between spaces, the reason last (decide.AppendRanking).
//
// The offset keeps the look at earlier attempts out of the join. It would be the larger part of its
// cost, and without statistics the planner would not see how much worse one join is than another.
var carriedFigures = figureTable{
	name: "carried_figures",
	by: []string{
		"hour", "routing_version", "route", "first_choice", "channel", "cause", "tenant",
		"calling_code",
	},
	sums: []string{"messages"},
	rows: `
	select @from::timestamptz as hour, routing_version, route, first_choice,
	  channel, cause, tenant, calling_code, count(*) as messages
	from (
	  select c.*, case when c.channel = c.first_choice then '' else (
	    select case
	      -- It was found out after the message had been sent once more.
	      when b.outcome = 'accepted' then 'unknown'
	      when b.outcome = 'refused' and b.provider_code = 'breaker_open' then 'breaker_open'
	      else coalesce(b.outcome, substring(g.ranking ->> 'line'
	        from '^[^,]* ([^ ,]+)'), g.reason, '')
	      end
	    from (
	      select e.attempt, e.ranking, e.reason from facts.attempts e
	      where e.message_seq = c.message_seq and e.channel <> c.first_choice
	      order by e.attempt limit 1) g
	    left join lateral (
	      select a.outcome, a.provider_code from facts.attempts a
	      where a.message_seq = c.message_seq and a.channel = c.first_choice
	        and a.attempt < g.attempt and not ` + isUnsent + `
	      order by a.attempt desc limit 1) b on true) end as cause
	  from (
	    select m.routing_version, m.route, m.first_choice, m.tenant,
	      coalesce(m.calling_code, 0::smallint) as calling_code,
	      a.channel, a.message_seq, a.attempt
	    from facts.attempts a join facts.stored_messages m on m.seq = a.message_seq
	    where a.message_seq < @next and a.claimed_at >= @from and a.claimed_at < @to
	      and a.outcome = 'accepted'
	      and m.route is not null and m.first_choice is not null
	      and m.routing_version is not null
	    offset 0
	  ) c
	  where c.attempt = 1 or not exists (select from facts.attempts e
	    where e.message_seq = c.message_seq
	      and e.attempt < c.attempt and e.channel = c.channel and e.outcome = 'accepted')
	) explained
	group by 2, 3, 4, 5, 6, 7, 8`,
}

// columns are all of them, but the day and the revision.
func (f *figureTable) columns() []string { return slices.Concat(f.by, f.sums) }

// closed are the figures of a day that has been closed.
func (f *figureTable) closed() string {
	return "\n\tselect " + strings.Join(f.columns(), ", ") + " from audit." + f.name +
		" where day = @day"
}

// fresh makes the empty temporary table of the figures that a day has now.
func (f *figureTable) fresh() string {
	return "create temporary table fresh on commit drop as select " +
		strings.Join(f.columns(), ", ") + " from audit." + f.name + " with no data"
}

// close writes how the fresh figures of the day differ from those that are there, as a revision.
// The first time there are none, and the revision is all of them.
func (f *figureTable) close() string {
	var negative, total, differs []string
	for _, column := range f.sums {
		negative = append(negative, "-"+column)
		total = append(total, "sum("+column+")")
		differs = append(differs, "sum("+column+") <> 0")
	}
	by := strings.Join(f.by, ", ")
	return "insert into dispatcher." + f.name + " (day, revision, " + strings.Join(f.columns(), ", ") +
		")\n\tselect @day::date, @revision::integer, " + by + ", " + strings.Join(total, ", ") +
		"\n\tfrom (select * from fresh union all\n\t  select " + by + ", " +
		strings.Join(negative, ", ") + " from audit." + f.name + " where day = @day) n\n\tgroup by " + by +
		"\n\thaving " + strings.Join(differs, " or ")
}

// parameters are those of a day's statements.
func (d *BusinessDay) parameters(low, high int64) pgx.NamedArgs {
	return pgx.NamedArgs{
		"day": d.Date, "from": d.From, "to": d.To, "low": low, "high": high,
		"next": (DayOf(high) + 1).first(),
	}
}

// sumFigures runs a statement over the figures of a day, which it calls figures: those that were
// written when the day was closed, else those of its rows.
func sumFigures[T any](
	ctx context.Context, d *db, scan pgx.RowToFunc[T], f *figureTable, day BusinessDay, sql string,
) ([]T, error) {
	closings, err := d.closings(ctx, day)
	if err != nil {
		return nil, err
	}
	if len(closings) > 0 {
		return rows(ctx, d, scan, "with figures as ("+f.closed()+")"+sql, day.parameters(0, 0))
	}
	low, high, err := d.seekRange(ctx, day.From, day.To)
	if err != nil {
		return nil, err
	}
	return rows(ctx, d, scan, "with figures as ("+f.rows+")"+sql, day.parameters(low, high))
}
