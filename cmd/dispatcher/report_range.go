package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/report"
)

// rangeFlags say which days a report adds up, and how.
type rangeFlags struct {
	unit     report.Unit
	from, to string
	day      string   // --day, instead of from and to
	names    []string // of dimensions
	wide     bool
	in       measure
	// waterfall asks for the steps from the agreed to the carried messages.
	waterfall bool
	as        reportFormat
	output    string
}

func (f *rangeFlags) addTo(flags *pflag.FlagSet) {
	first := "the first of the " + string(f.unit) + " of --to"
	if f.unit == report.Day {
		first = "--to"
	}
	flags.StringVar(&f.from, "from", "", "first day, such as 2026-11-16 (default "+first+")")
	flags.StringVar(&f.to, "to", "", "last day (default today)")
	flags.StringSliceVar(&f.names, "by", nil, "what rows tell apart: some of hour, route, channel, "+
		"tenant, country, sender, currency, reason (default route,channel)")
	flags.BoolVar(&f.wide, "wide", false, "in tables and HTML one row a "+string(f.unit)+", and "+
		"the values of the last dimension side by side: what was carried, then its share")
	f.in = inMessages
	flags.Var(&f.in, "in", "what tables and HTML count: drawn, carried and delivered, "+
		"or attempts by outcome")
	flags.BoolVar(&f.waterfall, "waterfall", false, "in tables also how each channel came from the "+
		"agreed to the carried messages, step by step")
	f.as.addTo(flags, &f.output)
}

// ofRange reports whether flags ask for something that the daily report of one day lacks.
func (f *rangeFlags) ofRange() bool {
	return len(f.names) > 0 || f.wide || f.in != inMessages || f.waterfall || f.output != "" ||
		f.as.fileOnly()
}

// ofDay makes the range a single day; empty for today.
func (f *rangeFlags) ofDay(day string) { f.from, f.to, f.day = day, day, "--day" }

func (c *cli) reportDailyCommand(long string) *cobra.Command {
	var day string
	f := rangeFlags{unit: report.Day}
	cmd := &cobra.Command{
		Use:   "daily",
		Short: "Report a day, or each day of a range",
		Long: long + `

With --from it has the rows of each day from there to --to, told apart by what --by names.`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = work(func(ctx context.Context, _ []string) error {
		return c.withLedger(ctx, func(l *database) error {
			switch {
			case f.from != "" || f.to != "":
				if day != "" {
					return usage(errors.New("--day goes with neither --from nor --to: name one day or " +
						"a range"))
				}
				return c.reportRange(ctx, l, &f)
			case f.ofRange():
				f.ofDay(day)
				return c.reportRange(ctx, l, &f)
			}
			return c.daily(ctx, l, day, cmp.Or(f.as.format, formatTable))
		})
	})
	cmd.Flags().StringVar(&day, "day", "", "day such as 2026-11-21 (default today)")
	f.addTo(cmd.Flags())
	return cmd
}

// reportPeriodsCommand is report weekly or report monthly.
func (c *cli) reportPeriodsCommand(unit report.Unit) *cobra.Command {
	f := rangeFlags{unit: unit}
	name, what := "weekly", "week, of ISO 8601"
	if unit == report.Month {
		name, what = "monthly", "month"
	}
	cmd := &cobra.Command{
		Use:   name,
		Short: fmt.Sprintf("Report each %s of a range of days", unit),
		Long: fmt.Sprintf(`Adds up the days from --from to --to by calendar %s, and assesses each
as the daily report does a day. Of days that are closed it takes the figures that were kept, also
when the messages have been dropped since; other days are added up from their messages. A row
counts the days of its %s that lie in the range: its first and last ones are named. The exit code
is 1 when a route did not keep its agreement in one of them. docs/audit.md explains every column.`,
			what, unit),
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			return c.withLedger(ctx, func(l *database) error {
				return c.reportRange(ctx, l, &f)
			})
		}),
	}
	f.addTo(cmd.Flags())
	return cmd
}

func (c *cli) reportRange(ctx context.Context, l *database, f *rangeFlags) error {
	by, err := report.ParseDimensions(f.names)
	if err != nil {
		return usage(fmt.Errorf("--by: %w", err))
	}
	if last := by[len(by)-1]; f.wide && (last == report.ByCurrency || last == report.ByReason) {
		return usage(fmt.Errorf("--wide: what was carried has no %s: name another dimension last", last))
	}
	as, err := f.as.of(f.output)
	if err != nil {
		return err
	}
	days, err := rangeDays(ctx, l, f, time.Now())
	if err != nil {
		return err
	}
	show, wipe := c.progress("adding up days", int64(len(days)))
	defer wipe()
	if !isTerminal(c.err) {
		show = nil // without steps it is faster
	}
	figures, err := readRange(ctx, l, &report.RangeFigures{Unit: f.unit, By: by, Days: days},
		as == formatHTML, show)
	if err != nil {
		return err
	}
	wipe()
	r := report.NewRange(figures)
	if err := c.writeReport(&r, figures, f); err != nil {
		return err
	}
	if r.Found() {
		return failed(nil)
	}
	return nil
}

// rangeDays are noons of the days of a range.
func rangeDays(
	ctx context.Context, l *database, f *rangeFlags, now time.Time,
) ([]time.Time, error) {
	current, err := currentRouting(ctx, l)
	if err != nil {
		return nil, err
	}
	days, err := lookup.Days(ctx, l.Ledger, current, f.unit, &lookup.Between{
		From: f.from, To: f.to, FromName: cmp.Or(f.day, "--from"), ToName: cmp.Or(f.day, "--to"),
	}, now)
	return days, inCommands(err)
}

// readRange adds the data of the days, also by hour if plots need that.
func readRange(
	ctx context.Context, l *database, f *report.RangeFigures, hours bool, done func(int64),
) (*report.RangeFigures, error) {
	var err error
	if f.Current, err = currentRouting(ctx, l); err != nil {
		return nil, err
	}
	return lookup.Range(ctx, l.Ledger, f, hours, done)
}
