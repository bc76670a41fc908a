package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// RangeDay is a business day of a range, and the period that its figures are added to: the day
// itself, its week or its month.
type RangeDay struct {
	BusinessDay
	Period string
}

// Split says by what the figures of a range are divided, in addition to period, version, route,
// channel and currency.
type Split struct{ Hour, Tenant, CallingCode, Sender, Reason bool }

// Part identifies one part of a range. Fields that Split does not ask for are zero in all parts.
type Part struct {
	Period      string
	Hour        int16 // of the day, 0 to 23, by the clock of the day's time zone
	Tenant      string
	CallingCode int16
	Sender      string
}

// DayFigures count the attempts that were claimed on a business day, the messages that were
// received on it by their first choice, and those that channels carried on it.
type DayFigures struct {
	Rows    []DailyRow   // one for each route, channel, currency and reason, in this order
	Choices []ChoiceRow  // one for each version, route, channel and cause
	Carried []CarriedRow // one for each version, route, first choice, channel, cause and currency
}

// PartFigures are the figures of one part.
type PartFigures struct {
	Part
	DayFigures
}

// RangeFigures are the figures of some business days.
type RangeFigures struct {
	Parts []PartFigures // ordered by Part
	// Open are the dates of days that are not closed. Their figures were added up from messages and
	// attempts.
	Open []string
	// Corrected are the closed days that have changed since they were closed, by date.
	Corrected []CorrectedDay
}

// CorrectedDay sums the corrections of a closed day: the closings after the first that changed
// figures.
type CorrectedDay struct {
	Date    string
	At      time.Time // of the last one
	Changes int64
	Figures []FigureChange // only in a range of one day
}

// rangeStep is how many closed days the first step of Range adds up. Each further step has twice as
// many, so that progress shows soon and a year takes few steps. Range takes all days in one step
// unless somebody asks for progress.
const rangeStep = 8

// Day adds up one business day, as it is at one moment: the stored figures if it was closed, else
// its messages and attempts. closed are its closings.
func (s *Reports) Day(
	ctx context.Context, day BusinessDay,
) (figures DayFigures, closed []DayClosing, err error) {
	err = s.snapshot(ctx, func(tx pgx.Tx) (err error) {
		if closed, err = closings(ctx, tx, day); err != nil {
			return err
		}
		one := RangeDay{BusinessDay: day}
		sums := rangeSums{parts: map[Part]*PartFigures{}}
		if len(closed) > 0 {
			err = sums.closed(ctx, tx, []RangeDay{one})
		} else {
			err = sums.open(ctx, tx, &one)
		}
		figures = sums.part(Part{}).DayFigures
		figures.merge()
		if err != nil || len(closed) < 2 {
			return err
		}
		changes, err := figureChanges(ctx, tx, day.Date)
		for i := range changes {
			c := &closed[changes[i].Revision-1]
			c.Figures = append(c.Figures, changes[i])
		}
		return err
	})
	return figures, closed, wrap("report a day", err)
}

// snapshot runs statements that see everything as it is at one moment.
func (d *db) snapshot(ctx context.Context, read func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, d.reports, pgx.TxOptions{
		IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly,
	}, read)
}

// Range adds up business days, as they are at one moment. It reads the stored figures of closed
// days, and the messages and attempts of the others. It calls done, unless that is nil, with how
// many days have been added up so far.
func (s *Reports) Range(
	ctx context.Context, days []RangeDay, split Split, done func(days int64),
) (RangeFigures, error) {
	var out RangeFigures
	sums := rangeSums{split: split, parts: map[Part]*PartFigures{}}
	ready := 0
	add := func(days int) {
		if ready += days; done != nil {
			done(int64(ready))
		}
	}
	err := s.snapshot(ctx, func(tx pgx.Tx) error {
		closed, open, err := divide(ctx, tx, days, &out)
		if err != nil {
			return err
		}
		for i := range open { // before the settings of closed days
			if err := sums.open(ctx, tx, &open[i]); err != nil {
				return fmt.Errorf("%s: %w", open[i].Date, err)
			}
			out.Open = append(out.Open, open[i].Date)
			add(1)
		}
		step := len(closed)
		if done != nil {
			step = rangeStep
		}
		for ; len(closed) > 0; step *= 2 {
			some := closed[:min(step, len(closed))]
			if err := sums.closed(ctx, tx, some); err != nil {
				return err
			}
			add(len(some))
			closed = closed[len(some):]
		}
		if len(days) == 1 && len(out.Corrected) == 1 {
			out.Corrected[0].Figures, err = figureChanges(ctx, tx, days[0].Date)
		}
		return err
	})
	if err != nil {
		return RangeFigures{}, wrap("report a range", err)
	}
	for _, part := range sums.parts {
		part.merge()
		out.Parts = append(out.Parts, *part)
	}
	slices.SortFunc(out.Parts, func(a, b PartFigures) int {
		return cmp.Or(cmp.Compare(a.Period, b.Period), cmp.Compare(a.Hour, b.Hour),
			cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.CallingCode, b.CallingCode),
			cmp.Compare(a.Sender, b.Sender))
	})
	return out, nil
}

// merge adds up the rows of each key, and sorts them, so that sums of fractions are always the
// same.
func (f *DayFigures) merge() {
	f.Rows = merged(f.Rows, (*DailyRow).Add, func(a, b DailyRow) int {
		return cmp.Or(cmp.Compare(a.Route, b.Route), cmp.Compare(a.Channel, b.Channel),
			cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Reason, b.Reason))
	})
	f.Choices = merged(f.Choices, (*ChoiceRow).add, func(a, b ChoiceRow) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Route, b.Route),
			cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Cause, b.Cause))
	})
	f.Carried = merged(f.Carried, (*CarriedRow).add, func(a, b CarriedRow) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Route, b.Route),
			cmp.Compare(a.FirstChoice, b.FirstChoice), cmp.Compare(a.Channel, b.Channel),
			cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Currency, b.Currency))
	})
}

// merged are the rows in the order of compare, those that are equal by it added up.
func merged[T any](rows []T, add func(sum, row *T), compare func(a, b T) int) []T {
	slices.SortFunc(rows, compare)
	sums := rows[:0]
	for i := range rows {
		if last := len(sums) - 1; last >= 0 && compare(sums[last], rows[i]) == 0 {
			add(&sums[last], &rows[i])
		} else {
			sums = append(sums, rows[i])
		}
	}
	return sums
}

// divide separates closed days from open ones, and adds to out the closed ones that were corrected.
// A day that was closed in another time zone, with another beginning or end, is open, as for
// closings.
func divide(
	ctx context.Context, q querier, days []RangeDay, out *RangeFigures,
) (closed, open []RangeDay, err error) {
	type closing struct {
		Day      string
		From, To time.Time
		Changes  int64
		Changed  *time.Time
	}
	dates := make([]string, len(days))
	for i := range days {
		dates[i] = days[i].Date
	}
	all, err := queried(ctx, q, pgx.RowToStructByPos[closing], `
		select distinct on (day) to_char(day, 'YYYY-MM-DD'), from_at, to_at,
		  coalesce(sum(changes) filter (where revision > 1) over whole, 0)::bigint,
		  max(at) filter (where revision > 1 and changes > 0) over whole
		from audit.closings where day = any($1::date[]) window whole as (partition by day)
		order by day, revision desc`, dates)
	if err != nil {
		return nil, nil, err
	}
	for i := range days {
		day := &days[i]
		at := slices.IndexFunc(all, func(c closing) bool {
			return c.Day == day.Date && c.From.Equal(day.From) && c.To.Equal(day.To)
		})
		if at < 0 {
			open = append(open, *day)
			continue
		}
		closed = append(closed, *day)
		if all[at].Changed != nil {
			out.Corrected = append(out.Corrected,
				CorrectedDay{Date: day.Date, At: *all[at].Changed, Changes: all[at].Changes})
		}
	}
	return closed, open, nil
}

// rangeSums collects the parts of a range.
type rangeSums struct {
	split Split
	parts map[Part]*PartFigures
}

// Rows of the statements of closed.
type (
	partRow struct {
		Part
		DailyRow
	}
	partChoice struct {
		Part
		ChoiceRow
	}
	partCarried struct {
		Part
		CarriedRow
	}
)

// closed adds the figures of closed days. The statements do not sort, see rangeSettings.
func (s *rangeSums) closed(ctx context.Context, tx pgx.Tx, days []RangeDay) error {
	dates, periods, zones := make([]string, len(days)), make([]string, len(days)), make([]string, len(days))
	for i := range days {
		dates[i], periods[i], zones[i] = days[i].Date, days[i].Period, days[i].Zone
	}
	if _, err := tx.Exec(ctx, rangeSettings); err != nil {
		return err
	}
	args := pgx.NamedArgs{
		"dates": dates, "periods": periods, "zones": zones, "split": s.split.sums(),
	}
	part, by := s.split.columns()
	reason, byReason := "''", by
	if s.split.Reason {
		reason, byReason = "reason", by+", reason"
	}
	attempts, err := queried(ctx, tx, pgx.RowToStructByPos[partRow], `
		select `+part+`, route, channel,
		  coalesce(sum(attempts) filter (where reason = 'fallback'), 0)::bigint,
		  sum(attempts)::bigint, sum(submitted)::bigint, sum(accepted)::bigint,
		  sum(delivered)::bigint, sum(rejected)::bigint, sum(refused)::bigint,
		  sum(throttled)::bigint, sum(unknown)::bigint, sum(unsent)::bigint, sum(pending)::bigint,
		  sum(segments)::bigint, sum(cost_micros)::bigint, sum(unknown_segments)::bigint,
		  sum(unknown_micros)::bigint, currency, sum(undelivered)::bigint, sum(no_receipt)::bigint,
		  coalesce(sum(attempts) filter (where reason = 'retry'), 0)::bigint,
		  coalesce(sum(attempts) filter (where reason = 'resend'), 0)::bigint,
		  coalesce(sum(attempts) filter (where reason = 'no_receipt'), 0)::bigint,
		  sum(delivered_segments)::bigint, sum(delivered_micros)::bigint, `+reason+`
		from (`+s.split.ofDays("attempt")+`) f
		group by `+byReason+`, route, channel, currency having sum(attempts) > 0`, args)
	if err != nil {
		return err
	}
	choices, err := queried(ctx, tx, pgx.RowToStructByPos[partChoice], `
		select `+part+`, routing_version, route, channel, sum(messages)::bigint,
		  sum(rejected)::bigint, sum(failed)::bigint, sum(unknown)::bigint, sum(open)::bigint,
		  sum(segments)::bigint, cause
		from (`+s.split.ofDays("choice")+`) f
		group by `+by+`, routing_version, route, channel, cause having sum(messages) > 0`, args)
	if err != nil {
		return err
	}
	carried, err := queried(ctx, tx, pgx.RowToStructByPos[partCarried], `
		select `+part+`, routing_version, route, first_choice, channel, cause,
		  sum(messages)::bigint, sum(segments)::bigint, sum(cost_micros)::bigint, currency,
		  sum(text_segments)::bigint
		from (`+s.split.ofDays("carried")+`) f
		group by `+by+`, routing_version, route, first_choice, channel, cause, currency
		having sum(messages) > 0 or sum(segments) > 0`, args)
	if err != nil {
		return err
	}
	for i := range attempts {
		p := s.part(attempts[i].Part)
		p.Rows = append(p.Rows, attempts[i].DailyRow)
	}
	for i := range choices {
		p := s.part(choices[i].Part)
		p.Choices = append(p.Choices, choices[i].ChoiceRow)
	}
	for i := range carried {
		p := s.part(carried[i].Part)
		p.Carried = append(p.Carried, carried[i].CarriedRow)
	}
	return nil
}

// rangeSettings hash the groups until the transaction ends: the planner expects many more than
// there are, and would sort all rows, on disk. It would also do so if the statements sorted the
// groups, so this process does that.
const rangeSettings = `select set_config('enable_sort', 'off', true),
	set_config('work_mem', '64MB', true)`

// ofDays selects the figures of closed days, of kind attempt, choice or carried: from their sums if
// these have what is asked for, else from the figures. Each day is looked up in the index. In a
// join the planner would hash a year's figures, on disk.
func (s Split) ofDays(kind string) string {
	from := kind + `_figures where day = d.day`
	if s.sums() != "" {
		from = kind + `_sums where day = d.day and split = @split`
	}
	return `select f.*, d.period, d.zone
		from unnest(@dates::date[], @periods::text[], @zones::text[]) d (day, period, zone)
		cross join lateral (select * from audit.` + from + ` offset 0) f`
}

// sums is the column split of the stored sums that have what is asked for. It is empty when more
// than one of hour, tenant, country and sender is asked for: then the figures have to be read.
func (s Split) sums() string {
	switch s {
	case Split{Reason: s.Reason}:
		return "none"
	case Split{Reason: s.Reason, Hour: true}:
		return "hour"
	case Split{Reason: s.Reason, Tenant: true}:
		return "tenant"
	case Split{Reason: s.Reason, CallingCode: true}:
		return "country"
	case Split{Reason: s.Reason, Sender: true}:
		return "sender"
	}
	return ""
}

// open adds a day from its messages and attempts, which it reads once for all figures.
func (s *rangeSums) open(ctx context.Context, tx pgx.Tx, day *RangeDay) error {
	low, high, err := seekRange(ctx, tx, day.From, day.To)
	if err != nil {
		return err
	}
	rows, err := queried(ctx, tx, pgx.RowToStructByNameLax[dayRow], dayRows,
		day.parameters(low, high, s.split))
	if err != nil {
		return err
	}
	for i := range rows {
		s.addRow(day, &rows[i])
	}
	return nil
}

// dayRow is a row of dayRows. Columns that dayRows does not have, the counts by reason, are 0.
type dayRow struct {
	DailyRow
	RoutingVersion                    int64
	FirstChoice, Cause, Ended         string
	ReceivedHour, ClaimedHour         *time.Time
	Tenant, Sender                    string
	CallingCode                       int16
	Drawn, DrawnRejected, DrawnFailed int64
	DrawnUnknown, DrawnOpen           int64
	DrawnSegments                     int64
	Carried, CarriedSegments          int64
	CarriedMicros, CarriedText        int64
}

// part is the part that a row belongs to by its ReceivedHour or its ClaimedHour.
func (r *dayRow) part(day *RangeDay, hour *time.Time) Part {
	p := Part{
		Period: day.Period, Tenant: r.Tenant, CallingCode: r.CallingCode, Sender: r.Sender,
	}
	if hour != nil {
		p.Hour = int16(hour.In(day.From.Location()).Hour())
	}
	return p
}

func (s *rangeSums) addRow(day *RangeDay, r *dayRow) {
	if r.Drawn > 0 {
		p := s.part(r.part(day, r.ReceivedHour))
		p.Choices = append(p.Choices, ChoiceRow{
			Version: r.RoutingVersion, Route: r.Route, Channel: r.FirstChoice, FirstChoice: r.Drawn,
			Rejected: r.DrawnRejected, Failed: r.DrawnFailed, Unknown: r.DrawnUnknown,
			Open: r.DrawnOpen, Segments: r.DrawnSegments, Cause: r.Ended,
		})
	}
	if row := r.DailyRow; row.Attempts > 0 {
		p := s.part(r.part(day, r.ClaimedHour))
		switch AttemptReason(row.Reason) {
		case ByFirstChoice: // all that are not counted by reason
		case ByFallback:
			row.Fallback = row.Attempts
		case ByRetry:
			row.Retries = row.Attempts
		case ByResend:
			row.Resends = row.Attempts
		case ByNoReceipt:
			row.Further = row.Attempts
		}
		if !s.split.Reason {
			row.Reason = ""
		}
		p.Rows = append(p.Rows, row)
	}
	if r.Carried > 0 || r.CarriedSegments > 0 {
		p := s.part(r.part(day, r.ClaimedHour))
		p.Carried = append(p.Carried, CarriedRow{
			Version: r.RoutingVersion, Route: r.Route, FirstChoice: r.FirstChoice,
			Channel: r.Channel, Cause: r.Cause, Messages: r.Carried, Segments: r.CarriedSegments,
			CostMicros: r.CarriedMicros, Currency: r.Currency, TextSegments: r.CarriedText,
		})
	}
}

// part returns the figures of a part, and creates them if needed.
func (s *rangeSums) part(of Part) *PartFigures {
	p := s.parts[of]
	if p == nil {
		p = &PartFigures{Part: of}
		s.parts[of] = p
	}
	return p
}

// columns are the columns of a Part, and those of them that are asked for. Figures are grouped by
// the latter only: PostgreSQL would hash the constants in place of the others for each row.
func (s Split) columns() (part, by string) {
	by = "period"
	asked := func(yes bool, column, none string) string {
		if !yes {
			return ", " + none
		}
		by += ", " + column
		return ", " + column
	}
	part = "period" +
		asked(s.Hour, "date_part('hour', hour at time zone zone)::smallint", "0::smallint") +
		asked(s.Tenant, "tenant", "''::text") +
		asked(s.CallingCode, "calling_code", "0::smallint") +
		asked(s.Sender, "sender", "''::text")
	return part, by
}
