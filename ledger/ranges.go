package ledger

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
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
	Rows    []DailyRow   // ordered by route, channel, currency and reason
	Choices []ChoiceRow  // ordered by version, route, channel and cause
	Carried []CarriedRow // ordered by version, route, first choice, channel, cause and currency
}

// PartFigures are the figures of one part. There may be several rows with the same key; the figures
// are their sums.
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
// many, so that progress shows soon and a year takes few steps. A period that lies in two steps
// gets more rows, so Range takes all days in one step unless somebody asks for progress.
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
		figures.sort()
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
		part.sort()
		out.Parts = append(out.Parts, *part)
	}
	slices.SortFunc(out.Parts, func(a, b PartFigures) int {
		return cmp.Or(cmp.Compare(a.Period, b.Period), cmp.Compare(a.Hour, b.Hour),
			cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.CallingCode, b.CallingCode),
			cmp.Compare(a.Sender, b.Sender))
	})
	return out, nil
}

// sort sorts the rows by what they are grouped by, so that sums of fractions are always the same.
func (p *DayFigures) sort() {
	slices.SortFunc(p.Rows, func(a, b DailyRow) int {
		return cmp.Or(cmp.Compare(a.Route, b.Route), cmp.Compare(a.Channel, b.Channel),
			cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Reason, b.Reason))
	})
	slices.SortFunc(p.Choices, func(a, b ChoiceRow) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Route, b.Route),
			cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Cause, b.Cause))
	})
	slices.SortFunc(p.Carried, func(a, b CarriedRow) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Route, b.Route),
			cmp.Compare(a.FirstChoice, b.FirstChoice), cmp.Compare(a.Channel, b.Channel),
			cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Currency, b.Currency))
	})
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

// closed adds the figures of closed days.
func (s *rangeSums) closed(ctx context.Context, tx pgx.Tx, days []RangeDay) error {
	dates, periods, zones := make([]string, len(days)), make([]string, len(days)), make([]string, len(days))
	for i := range days {
		dates[i], periods[i], zones[i] = days[i].Date, days[i].Period, days[i].Zone
	}
	if _, err := tx.Exec(ctx, rangeSettings); err != nil {
		return err
	}
	return s.add(ctx, tx, "", s.split.ofDays, pgx.NamedArgs{
		"dates": dates, "periods": periods, "zones": zones, "split": s.split.sums(),
	})
}

// rangeSettings hash the groups until the transaction ends: the planner expects many more than
// there are, and would sort all rows, on disk. It would also do so if the statements sorted the
// groups, so this process does that.
const rangeSettings = `select set_config('enable_sort', 'off', true),
	set_config('work_mem', '64MB', true)`

// ofDays selects the figures of closed days: from their sums if these have what is asked for, else
// from the figures. Each day is looked up in the index. In a join the planner would hash a year's
// figures, on disk.
func (s Split) ofDays(f *figureTable) string {
	from := f.name + ` where day = d.day`
	if s.sums() != "" {
		from = f.daily + ` where day = d.day and split = @split`
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
	args := day.parameters(low, high)
	args["period"], args["zone"] = day.Period, day.Zone
	return s.add(ctx, tx, "day as materialized ("+dayRows+"), ", func(f *figureTable) string {
		return `select r.*, @period::text as period, @zone::text as zone from (` + f.sum("day") + `) r`
	}, args)
}

// Kinds of partRow.
const (
	attemptsRow int32 = iota
	choicesRow
	carriedRow
)

// partRow is one row of a part, of one of three kinds. The fields of the others are zero.
type partRow struct {
	Kind int32
	Part
	DailyRow
	ChoiceRow
	CarriedRow
}

// zeros are the columns of a T in a row of another kind.
func zeros[T any]() string {
	var all strings.Builder
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if field.Type.Kind() == reflect.String {
			all.WriteString(", ''::text")
		} else {
			all.WriteString(", 0::bigint")
		}
	}
	return all.String()
}

// add runs one statement over the figures that figures selects, and collects its rows. before is
// the beginning of its with clause. The statement does not sort, see rangeSettings.
func (s *rangeSums) add(
	ctx context.Context, tx pgx.Tx, before string, figures func(*figureTable) string,
	args pgx.NamedArgs,
) error {
	part, by := s.split.columns()
	reason, byReason := "''::text", by
	if s.split.Reason {
		reason, byReason = "reason", by+", reason"
	}
	daily, choice, carried := zeros[DailyRow](), zeros[ChoiceRow](), zeros[CarriedRow]()
	rows, err := queried(ctx, tx, pgx.RowToStructByPos[partRow], "with "+before+
		"attempts as ("+figures(&attemptFigures)+"), choices as ("+figures(&choiceFigures)+
		"), carried as ("+figures(&carriedFigures)+`)
		select 0, `+part+`, `+attemptSums+`, `+reason+choice+carried+` from attempts
		group by `+byReason+`, route, channel, currency having sum(attempts) > 0
		union all
		select 1, `+part+daily+`, `+choiceSums+carried+` from choices
		group by `+by+`, routing_version, route, channel, cause having sum(messages) > 0
		union all
		select 2, `+part+daily+choice+`, `+carriedSums+` from carried
		group by `+by+`, routing_version, route, first_choice, channel, cause, currency
		having `+carriedSome, args)
	if err != nil {
		return err
	}
	for i := range rows {
		p := s.part(rows[i].Part)
		switch rows[i].Kind {
		case attemptsRow:
			p.Rows = append(p.Rows, rows[i].DailyRow)
		case choicesRow:
			p.Choices = append(p.Choices, rows[i].ChoiceRow)
		case carriedRow:
			p.Carried = append(p.Carried, rows[i].CarriedRow)
		}
	}
	return nil
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
