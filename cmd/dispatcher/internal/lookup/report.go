package lookup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// notBegun is the error of a day in the future.
func notBegun(name, day string, zone *time.Location) error {
	return &control.Refused{Err: fmt.Errorf(
		"%s %s has not begun in %s: there is nothing to report yet", name, day, zone)}
}

// BusinessDay returns noon of a day, and the time zone of that business day; see app.BusinessDay.
// An empty day is today in the zone of the current routing. It refuses a day in the future. name is
// what errors call the day, such as a flag.
func BusinessDay(
	ctx context.Context, l *ledger.Ledger, current *config.Routing, name, day string, now time.Time,
) (time.Time, *time.Location, error) {
	if day == "" {
		return now, current.Timezone, nil
	}
	noon, err := app.ParseDate(day, current.Timezone)
	if err != nil {
		return now, nil, &control.Refused{Err: fmt.Errorf("%s %w", name, err)}
	}
	found, zone, err := app.BusinessDay(ctx, l.Routing, day)
	if errors.Is(err, ledger.ErrNoRouting) {
		found, zone, err = noon, current.Timezone, nil
	}
	if err == nil && admission.Day.Start(found, zone).After(now) {
		err = notBegun(name, day, zone)
	}
	return found, zone, err
}

// Daily reads the figures of the report of a day; an empty day is today. For name see BusinessDay.
func Daily(
	ctx context.Context, l *ledger.Ledger, current *config.Routing, name, day string, now time.Time,
) (*report.Figures, error) {
	f := &report.Figures{Current: current}
	var err error
	if f.Day, f.Zone, err = BusinessDay(ctx, l, current, name, day, now); err != nil {
		return nil, err
	}
	end, err := turn(ctx, l)
	if err != nil {
		return nil, err
	}
	defer end()
	f.Complete = !admission.Day.End(f.Day, f.Zone).After(now)
	business := ledger.NewBusinessDay(f.Day, f.Zone)
	figures, closings, err := l.Reports.Day(ctx, business)
	if err != nil {
		return nil, err
	}
	f.Rows, f.Choices, f.Carried = figures.Rows, figures.Choices, figures.Carried
	f.Closings = closings
	if f.Checkpoint, err = l.Seals.Checkpoint(ctx); err != nil {
		return nil, err
	}
	var wanted []int64
	for i := range f.Choices {
		wanted = append(wanted, f.Choices[i].Version)
	}
	for i := range f.Carried {
		wanted = append(wanted, f.Carried[i].Version)
	}
	f.InForce, f.Versions, err = inForce(ctx, l, business.From, business.To, wanted)
	return f, err
}

// inForce reads the versions that were in force between from and to, but not after now. It also
// reads the documents of these versions and of those in wanted.
func inForce(
	ctx context.Context, l *ledger.Ledger, from, to time.Time, wanted []int64,
) ([]ledger.InForce, map[int64]*config.Routing, error) {
	if now := time.Now(); to.After(now) {
		to = now
	}
	times, err := l.Routing.InForce(ctx, from, to)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range times {
		wanted = append(wanted, t.Base)
	}
	versions, err := routingVersions(ctx, l, wanted)
	return times, versions, err
}

// routingVersions reads the routing documents of the versions that figures belong to.
func routingVersions(
	ctx context.Context, l *ledger.Ledger, wanted []int64,
) (map[int64]*config.Routing, error) {
	out := map[int64]*config.Routing{}
	slices.Sort(wanted)
	for _, number := range slices.Compact(wanted) {
		version, err := l.Routing.Version(ctx, number)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", config.VersionName(number), err)
		}
		if out[number], err = control.StoredRouting(&version); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Between is a range of days. An empty To is today, an empty From the first day of the unit (such
// as the month) that To is in. FromName and ToName are what errors call them.
type Between struct {
	From, To         string
	FromName, ToName string
	// Most is how many days the range may have; 0 for any number.
	Most int
}

// Days returns noon of each day of a range.
func Days(
	ctx context.Context, l *ledger.Ledger, current *config.Routing, unit report.Unit, b *Between,
	now time.Time,
) ([]time.Time, error) {
	to, zone, err := rangeEnd(ctx, l, current, b.ToName, b.To, now)
	if err != nil {
		return nil, err
	}
	from := unit.First(to)
	if b.From != "" {
		if from, _, err = rangeEnd(ctx, l, current, b.FromName, b.From, now); err != nil {
			return nil, err
		}
	}
	if n := math.Round(to.Sub(from).Hours()/24) + 1; b.Most > 0 && n > float64(b.Most) {
		return nil, &control.Refused{Err: fmt.Errorf("the range has more than %d days: ask for less, "+
			"or write files with \"dispatcher report\"", b.Most)}
	}
	dates := datesBetween(from, to)
	if len(dates) == 0 {
		return nil, &control.Refused{Err: fmt.Errorf("%s %s is after %s %s", b.FromName, b.From,
			b.ToName, to.Format(time.DateOnly))}
	}
	noons, err := app.BusinessDays(ctx, l.Routing, dates)
	if errors.Is(err, ledger.ErrNoRouting) { // an empty database
		noons = nil
		for _, date := range dates {
			noon, err := app.ParseDate(date, zone)
			if err != nil {
				return nil, err
			}
			noons = append(noons, noon)
		}
		return noons, nil
	}
	return noons, err
}

// datesBetween are the dates from that of first to that of last. It counts dates and not hours: a
// day may have 23 or 25.
func datesBetween(first, last time.Time) (dates []string) {
	end := last.Format(time.DateOnly)
	day := time.Date(first.Year(), first.Month(), first.Day(), 12, 0, 0, 0, time.UTC)
	for ; day.Format(time.DateOnly) <= end; day = day.AddDate(0, 0, 1) {
		dates = append(dates, day.Format(time.DateOnly))
	}
	return dates
}

// rangeEnd returns noon of the first or last day of a range. It refuses a day in the future.
func rangeEnd(
	ctx context.Context, l *ledger.Ledger, current *config.Routing, name, date string, now time.Time,
) (time.Time, *time.Location, error) {
	noon, zone, err := BusinessDay(ctx, l, current, name, date, now)
	if err != nil {
		return noon, zone, err
	}
	return noon.In(zone), zone, nil
}

// Range sums the figures of the days into f, by hour too if hours is set, as plots need it. done
// may be nil; it is called with the number of days done so far.
func Range(
	ctx context.Context, l *ledger.Ledger, f *report.RangeFigures, hours bool, done func(int64),
) (*report.RangeFigures, error) {
	end, err := turn(ctx, l)
	if err != nil {
		return nil, err
	}
	defer end()
	days := make([]ledger.RangeDay, len(f.Days))
	for i, noon := range f.Days {
		days[i] = ledger.RangeDay{
			BusinessDay: ledger.NewBusinessDay(noon, noon.Location()), Period: f.Unit.Period(noon),
		}
	}
	if f.Checkpoint, err = l.Seals.Checkpoint(ctx); err != nil {
		return nil, err
	}
	f.Complete = !days[len(days)-1].To.After(time.Now())
	split := report.SplitOf(f.By)
	split.Hour = split.Hour || hours
	if f.Ledger, err = l.Reports.Range(ctx, days, split, done); err != nil {
		return nil, err
	}
	var wanted []int64
	for i := range f.Ledger.Parts {
		for _, c := range f.Ledger.Parts[i].Choices {
			wanted = append(wanted, c.Version)
		}
		for _, c := range f.Ledger.Parts[i].Carried {
			wanted = append(wanted, c.Version)
		}
	}
	f.InForce, f.Versions, err = inForce(ctx, l, days[0].From, days[len(days)-1].To, wanted)
	return f, err
}
