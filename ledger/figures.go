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
	by, sums []figure
	// some is the condition, over the sums of dayRows, that there is anything to tell.
	some string
}

// figure is a column, and that of dayRows which it is made of.
type figure struct{ name, of string }

// same are columns that are called as those that they are made of.
func same(names ...string) (out []figure) {
	for _, name := range names {
		out = append(out, figure{name, name})
	}
	return out
}

// choiceFigures are Reports.Choices by hour, tenant, calling code and sender.
var choiceFigures = figureTable{
	name: "choice_figures",
	by: append(same("hour", "routing_version", "route", "tenant", "calling_code", "sender"),
		figure{"channel", "first_choice"}, figure{"cause", "ended"}),
	sums: []figure{
		{"messages", "drawn"},
		{"rejected", "drawn_rejected"},
		{"failed", "drawn_failed"},
		{"unknown", "drawn_unknown"},
		{"open", "drawn_open"},
		{"segments", "drawn_segments"},
	},
	some: "sum(drawn) > 0",
}

// attemptFigures are Reports.Daily by hour, version, reason, tenant, calling code and sender.
var attemptFigures = figureTable{
	name: "attempt_figures",
	by: same("hour", "routing_version", "route", "channel", "reason", "currency", "tenant",
		"calling_code", "sender"),
	sums: same("attempts", "submitted", "accepted", "rejected", "refused", "throttled", "unknown",
		"unsent", "pending", "delivered", "undelivered", "no_receipt", "segments", "cost_micros",
		"unknown_segments", "unknown_micros", "delivered_segments", "delivered_micros"),
	some: "sum(attempts) > 0",
}

// carriedFigures are Reports.CarriedOn by hour, tenant, calling code and sender.
var carriedFigures = figureTable{
	name: "carried_figures",
	by: same("hour", "routing_version", "route", "first_choice", "channel", "cause", "currency",
		"tenant", "calling_code", "sender"),
	sums: []figure{
		{"messages", "carried"},
		{"segments", "carried_segments"},
		{"cost_micros", "carried_micros"},
		{"text_segments", "carried_text"},
	},
	some: "sum(carried) > 0 or sum(carried_segments) > 0",
}

// figuresNow is what dispatcher.closings.figures says of a revision that this release writes: it has
// the causes of choiceFigures and the text_segments of carriedFigures.
const figuresNow = 2

// figureTables are all of them.
var figureTables = []*figureTable{&choiceFigures, &attemptFigures, &carriedFigures}

// certain are the segments of attempt a that are on the bill for sure: of an unknown one those
// parts that were accepted before the rest got no answer, each under a reference of its own.
const certain = `(case when a.outcome = 'unknown' then least(
	  coalesce(cardinality(string_to_array(a.provider_reference, ' ')), 0), a.segments)
	when a.outcome is not null then a.segments else 0 end)`

// certainCost is their price; every segment of an attempt costs the same.
const certainCost = `(case when a.outcome is null or a.segments = 0 then 0
	else a.price_micros / a.segments * ` + certain + ` end)`

// dayRows adds up messages and attempts from @from to @to, which it calls one hour, for all tables
// of figures at once: each message and each attempt is read once, and joined once. Messages
// received then have numbers between @low and @high.
//
//   - drawn are messages that were received then and have a first choice; they are counted with
//     their first attempt, or with none. ended is why no channel is known to have taken them.
//   - attempts are those that were claimed then. The first part of the union has those of messages
//     with numbers in between, and attempts of these messages that were claimed at other times,
//     which count nothing. The second part has the few others. They are found by the index on
//     claimed_at, and are of messages before @next, where a day begins: a bound within a day would
//     have the index on the numbers read up to it.
//   - carried are messages that the channel of an attempt accepted then. One that was accepted in
//     several attempts, because its parts went one after the other, counts with the first of them,
//     and its segments and money with each.
//
// Sums of one kind may stand in several rows, and those of drawn_open may be below zero there.
var dayRows = `
	select @from::timestamptz as hour, routing_version, route, first_choice, channel, reason,
	  currency, tenant, calling_code, sender, cause, ended,
	  count(*) filter (where drawn) as drawn,
	  count(*) filter (where drawn and state = 'rejected') as drawn_rejected,
	  count(*) filter (where drawn and state = 'failed') as drawn_failed,
	  count(*) filter (where drawn and state = 'unknown') as drawn_unknown,
	  count(*) filter (where drawn and ended = 'open') as drawn_open,
	  coalesce(sum(text_segments) filter (where drawn), 0) as drawn_segments,
	  count(*) filter (where made) as attempts,
	  count(*) filter (where made and a.outcome <> 'refused') as submitted,
	  count(*) filter (where made and a.outcome = 'accepted') as accepted,
	  count(*) filter (where made and a.outcome = 'rejected') as rejected,
	  count(*) filter (where made and a.outcome = 'refused' and not ` + isUnsent + `) as refused,
	  count(*) filter (where made and a.outcome = 'throttled') as throttled,
	  count(*) filter (where made and a.outcome = 'unknown') as unknown,
	  count(*) filter (where made and ` + isUnsent + `) as unsent,
	  count(*) filter (where made and a.outcome is null) as pending,
	  count(*) filter (where made and a.outcome = 'accepted'
	    and a.receipt_state = 'delivered') as delivered,
	  count(*) filter (where made and a.outcome = 'accepted'
	    and a.receipt_state = 'undelivered') as undelivered,
	  count(*) filter (where made and a.outcome = 'accepted'
	    and a.receipt_state = 'no_receipt') as no_receipt,
	  coalesce(sum(` + certain + `) filter (where made), 0) as segments,
	  coalesce(sum(` + certainCost + `) filter (where made), 0)::bigint as cost_micros,
	  coalesce(sum(a.segments - ` + certain + `) filter (where made and a.outcome = 'unknown'), 0)
	    as unknown_segments,
	  coalesce(sum(a.price_micros - ` + certainCost + `)
	    filter (where made and a.outcome = 'unknown'), 0)::bigint as unknown_micros,
	  coalesce(sum(a.segments) filter (where made and a.outcome = 'accepted'
	    and a.receipt_state = 'delivered'), 0) as delivered_segments,
	  coalesce(sum(a.price_micros) filter (where made and a.outcome = 'accepted'
	    and a.receipt_state = 'delivered'), 0)::bigint as delivered_micros,
	  count(*) filter (where made and carries and first_part) as carried,
	  coalesce(sum(a.segments) filter (where made and carries), 0) as carried_segments,
	  coalesce(sum(a.price_micros) filter (where made and carries), 0)::bigint as carried_micros,
	  coalesce(sum(text_segments) filter (where made and carries and first_part), 0) as carried_text
	from (` + dayAttempts(`facts.stored_messages m
	  left join facts.attempts a on a.message_seq = m.seq
	    and a.message_seq > @low and a.message_seq < @high
	  where m.seq > @low and m.seq < @high`) + `
	  union all` + dayAttempts(`facts.attempts a
	  cross join lateral (select * from facts.stored_messages s where s.seq = a.message_seq
	    offset 0) m
	  where a.message_seq < @next and (a.message_seq <= @low or a.message_seq >= @high)
	    and a.claimed_at >= @from and a.claimed_at < @to`) + `
	) a
	group by 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12`

// dayAttempts are rows of a message m and an attempt a, which may be null.
//
// Only what another channel than the first choice carried is looked up again by the primary key: g
// is the attempt with which the message left its first choice, b what had come of that before.
// Where the first choice was not tried at all, its reason stands with g: a ranking lists the draw's
// first choice in front, its fields between spaces, the reason last (decide.AppendRanking).
func dayAttempts(from string) string {
	const carries = `(a.outcome = 'accepted' and m.route is not null
	      and m.first_choice is not null and m.routing_version is not null)`
	const drawn = `(m.first_choice is not null and m.received_at >= @from and m.received_at < @to
	      and coalesce(a.attempt, 1) = 1)`
	return `
	  select coalesce(m.routing_version, 0) as routing_version, coalesce(m.route, '') as route,
	    coalesce(m.first_choice, '') as first_choice, m.tenant, m.state,
	    coalesce(m.calling_code, 0::smallint) as calling_code, coalesce(m.sender, '') as sender,
	    m.segments as text_segments, coalesce(a.channel, '') as channel,
	    coalesce(a.reason, '') as reason, coalesce(a.currency, '') as currency, a.outcome,
	    a.segments, a.price_micros, a.provider_reference, a.provider_code, a.receipt_state,
	    ` + drawn + ` as drawn,
	    case
	      when not ` + drawn + ` then ''
	      when m.state = 'rejected' then
	        case when m.reason = 'opted_out' then m.reason else 'rejected' end
	      when m.state = 'failed' then
	        case when m.reason in ('expired', 'cancelled', 'no_channel') then m.reason else 'failed' end
	      when m.state = 'unknown' then 'no_answer'
	      when m.state in ('scheduled', 'waiting', 'retry') then 'open'
	      -- The state of a message that was simply accepted stays sending; see message_states.
	      when m.state <> 'sending' then ''
	      when m.attempts = a.attempt then case when a.outcome = 'accepted' then '' else 'open' end
	      when exists (select from facts.attempts e where e.message_seq = m.seq
	        and e.attempt = m.attempts and e.outcome = 'accepted') then ''
	      else 'open' end as ended,
	    coalesce(a.claimed_at >= @from and a.claimed_at < @to, false) as made,
	    ` + carries + ` as carries,
	    a.attempt = 1 or ` + carries + ` and not exists (select from facts.attempts e
	      where e.message_seq = a.message_seq and e.attempt < a.attempt
	        and e.channel = a.channel and e.outcome = 'accepted') as first_part,
	    case when ` + carries + ` and a.channel <> m.first_choice then (
	      select case
	        when a.reason = 'no_receipt' then a.reason
	        -- It was found out after the message had been sent once more.
	        when b.outcome = 'accepted' then 'unknown'
	        when b.outcome = 'refused' and b.provider_code = 'breaker_open' then 'breaker_open'
	        else coalesce(b.outcome, substring(g.ranking ->> 'line'
	          from '^[^,]* ([^ ,]+)'), g.reason, '')
	        end
	      from (
	        select e.attempt, e.ranking, e.reason from facts.attempts e
	        where e.message_seq = a.message_seq and e.channel <> m.first_choice
	        order by e.attempt limit 1) g
	      left join lateral (
	        select a.outcome, a.provider_code from facts.attempts a
	        where a.message_seq = m.seq and a.channel = m.first_choice
	          and a.attempt < g.attempt and not ` + isUnsent + `
	        order by a.attempt desc limit 1) b on true) else '' end as cause
	  from ` + from
}

// columns are all of them, but the day and the revision.
func (f *figureTable) columns() (names []string) {
	for _, c := range slices.Concat(f.by, f.sums) {
		names = append(names, c.name)
	}
	return names
}

// sum adds up rows as dayRows returns them.
func (f *figureTable) sum(from string) string {
	var columns, by []string
	for _, c := range f.by {
		columns, by = append(columns, c.of+" as "+c.name), append(by, c.of)
	}
	for _, c := range f.sums {
		columns = append(columns, "sum("+c.of+")::bigint as "+c.name)
	}
	return "\n\tselect " + strings.Join(columns, ", ") + " from " + from + " d group by " +
		strings.Join(by, ", ") + " having " + f.some
}

// rows is the statement that adds up messages and attempts; see dayRows.
func (f *figureTable) rows() string { return f.sum("(" + dayRows + ")") }

// closed are the figures of a day that has been closed.
func (f *figureTable) closed() string {
	return "\n\tselect " + strings.Join(f.columns(), ", ") + " from audit." + f.name +
		" where day = @day"
}

// close writes how the figures of the day, of which table fresh has dayRows, differ from those that
// are there, as a revision. The first time there are none, and the revision is all of them.
func (f *figureTable) close() string {
	var names, negative, total, differs []string
	for _, c := range f.by {
		names = append(names, c.name)
	}
	for _, c := range f.sums {
		negative = append(negative, "-"+c.name)
		total = append(total, "sum("+c.name+")")
		differs = append(differs, "sum("+c.name+") <> 0")
	}
	by := strings.Join(names, ", ")
	return "insert into dispatcher." + f.name + " (day, revision, " + strings.Join(f.columns(), ", ") +
		")\n\tselect @day::date, @revision::integer, " + by + ", " + strings.Join(total, ", ") +
		"\n\tfrom (" + f.sum("fresh") + " union all\n\t  select " + by + ", " +
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
	return rows(ctx, d, scan, "with figures as ("+f.rows()+")"+sql, day.parameters(low, high))
}
