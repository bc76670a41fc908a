package ledger

import (
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// BusinessDay is a day in the reports: from midnight to midnight in a time zone.
type BusinessDay struct {
	Date     string // 2026-11-21
	Zone     string // such as Europe/London
	From, To time.Time
}

// NewBusinessDay returns the day that contains an instant.
func NewBusinessDay(at time.Time, zone *time.Location) BusinessDay {
	return BusinessDay{
		Date: at.In(zone).Format(time.DateOnly), Zone: zone.String(),
		From: admission.Day.Start(at, zone), To: admission.Day.End(at, zone),
	}
}

// figureTable is one kind of figures of a business day. They are added up from messages and
// attempts, or read as they were stored when the day was closed, with later corrections. A view of
// schema audit shows the stored figures under the same name.
type figureTable struct {
	name string
	// daily is the view of schema audit that has the sums of each closed day, see Split.sums.
	daily string
	// by are the columns of its key, sums the columns that are added up.
	by, sums []figure
	// some is the condition, over the sums of dayRows, that a row is not empty.
	some string
}

// figure is a column, and the column of dayRows that it is computed from.
type figure struct{ name, of string }

// same are columns with the same name in dayRows.
func same(names ...string) (out []figure) {
	for _, name := range names {
		out = append(out, figure{name, name})
	}
	return out
}

// choiceFigures are the rows of DayFigures.Choices, by hour, tenant, calling code and sender as
// well.
var choiceFigures = figureTable{
	name: "choice_figures", daily: "choice_sums",
	by: append(same("routing_version", "route", "tenant", "calling_code", "sender"),
		figure{"hour", "received_hour"}, figure{"channel", "first_choice"}, figure{"cause", "ended"}),
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

// attemptFigures are the rows of DayFigures.Rows, by hour, version, reason, tenant, calling code
// and sender as well.
var attemptFigures = figureTable{
	name: "attempt_figures", daily: "attempt_sums",
	by: append(same("routing_version", "route", "channel", "reason", "currency", "tenant",
		"calling_code", "sender"), figure{"hour", "claimed_hour"}),
	sums: same("attempts", "submitted", "accepted", "rejected", "refused", "throttled", "unknown",
		"unsent", "pending", "delivered", "undelivered", "no_receipt", "segments", "cost_micros",
		"unknown_segments", "unknown_micros", "delivered_segments", "delivered_micros"),
	some: "sum(attempts) > 0",
}

// carriedFigures are the rows of DayFigures.Carried, by hour, tenant, calling code and sender as
// well.
var carriedFigures = figureTable{
	name: "carried_figures", daily: "carried_sums",
	by: append(same("routing_version", "route", "first_choice", "channel", "cause", "currency",
		"tenant", "calling_code", "sender"), figure{"hour", "claimed_hour"}),
	sums: []figure{
		{"messages", "carried"},
		{"segments", "carried_segments"},
		{"cost_micros", "carried_micros"},
		{"text_segments", "carried_text"},
	},
	some: "sum(carried) > 0 or sum(carried_segments) > 0",
}

// figureTables are all of them.
var figureTables = []*figureTable{&choiceFigures, &attemptFigures, &carriedFigures}

// billedSegments are the segments of attempt a that are certainly billed. For an unknown attempt
// these are the parts that were accepted before an answer was missing, each under a reference of
// its own.
const billedSegments = `(case when a.outcome = 'unknown' then least(
	  coalesce(cardinality(string_to_array(a.provider_reference, ' ')), 0), a.segments)
	when a.outcome is not null then a.segments else 0 end)`

// billedCost is their price. Every segment of an attempt costs the same.
const billedCost = `(case when a.outcome is null or a.segments = 0 then 0
	else a.price_micros / a.segments * ` + billedSegments + ` end)`

// dayRows adds up messages and attempts from @from to @to by the hour, counted from @from, for all
// tables of figures at once, so that each message and each attempt is read and joined once.
// Messages received in that time have numbers between @low and @high.
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
// The same key may have several rows.
var dayRows = `
	select case when drawn then date_bin('1 hour', received_at, @from::timestamptz) end
	    as received_hour,
	  case when made then date_bin('1 hour', claimed_at, @from::timestamptz) end as claimed_hour,
	  routing_version, route, first_choice, channel, reason, currency, tenant, calling_code, sender,
	  cause, ended,
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
	  coalesce(sum(` + billedSegments + `) filter (where made), 0) as segments,
	  coalesce(sum(` + billedCost + `) filter (where made), 0)::bigint as cost_micros,
	  coalesce(sum(a.segments - ` + billedSegments + `) filter (where made and a.outcome = 'unknown'), 0)
	    as unknown_segments,
	  coalesce(sum(a.price_micros - ` + billedCost + `)
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
	group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13`

// dayAttempts are rows of a message m and an attempt a, which may be null.
//
// For messages that another channel than the first choice carried, two attempts are looked up by
// the primary key: g is the attempt with which the message left its first choice, b the last
// attempt on the first choice before that. When the first choice was not tried, the reason is in
// the ranking of g: its first entry is the draw's first choice, fields are separated by spaces, and
// the reason is the last field (decide.AppendRanking).
func dayAttempts(from string) string {
	const carries = `(a.outcome = 'accepted' and m.route is not null
	      and m.first_choice is not null and m.routing_version is not null)`
	const drawn = `(m.first_choice is not null and m.received_at >= @from and m.received_at < @to
	      and coalesce(a.attempt, 1) = 1)`
	return `
	  select coalesce(m.routing_version, 0) as routing_version, coalesce(m.route, '') as route,
	    coalesce(m.first_choice, '') as first_choice, m.tenant, m.state, m.received_at,
	    a.claimed_at,
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
	      when a.outcome = 'accepted' then ''
	      when m.attempts > 1 and exists (select from facts.attempts e where e.message_seq = m.seq
	        and e.outcome = 'accepted') then ''
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

// columns are all columns except the day and the revision.
func (f *figureTable) columns() (names []string) {
	for _, c := range slices.Concat(f.by, f.sums) {
		names = append(names, c.name)
	}
	return names
}

// sum is the statement that adds up rows of dayRows from a table or subquery.
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

// close is the statement that stores, as a revision, the differences between the new figures of the
// day, whose dayRows are in table fresh, and the stored ones. The first revision holds all figures.
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

// parameters are the parameters of a day's statements.
func (d *BusinessDay) parameters(low, high int64) pgx.NamedArgs {
	return pgx.NamedArgs{
		"day": d.Date, "from": d.From, "to": d.To, "low": low, "high": high,
		"next": (DayOf(high) + 1).first(),
	}
}
