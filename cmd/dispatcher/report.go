package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

func (c *cli) reportCommand() *cobra.Command {
	as := format(formatTable)
	var day string
	run := work(func(ctx context.Context, _ []string) error { return c.daily(ctx, day, as) })
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Report a day: shares against what was agreed, fallbacks, segments and cost",
		Long: `Counts one business day, cut at midnight of the time zone that the routing document had when the
day ended: what was agreed, what the draws chose, what was sent and what it cost. docs/audit.md explains every column.`,
		Args: cobra.NoArgs,
		RunE: run,
	}
	daily := &cobra.Command{Use: "daily", Short: cmd.Short, Long: cmd.Long, Args: cobra.NoArgs, RunE: run}
	for _, one := range []*cobra.Command{cmd, daily} {
		one.Flags().StringVar(&day, "day", "", "day such as 2026-11-21 (default today)")
		one.Flags().Var(&as, "format", "output format")
	}
	cmd.AddCommand(daily)
	return cmd
}

func (c *cli) daily(ctx context.Context, day string, as format) error {
	s, l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	figures, err := dailyFigures(ctx, l, s, day)
	if err != nil {
		return err
	}
	daily := report.NewDaily(figures)
	if as == formatTable {
		c.printDaily(&daily)
		return nil
	}
	return as.print(c.out, daily, dailySheet(&daily, as))
}

// dailyFigures reads what the report is made of.
func dailyFigures(ctx context.Context, l *ledger.Ledger, s *config.Settings, day string) (*report.Figures, error) {
	current, err := currentRouting(ctx, l, s)
	if err != nil {
		return nil, err
	}
	f := &report.Figures{Current: current, Versions: map[int64]*config.Routing{}}
	if f.Day, f.Zone, err = businessDay(ctx, l, s, day, time.Now()); err != nil {
		return nil, err
	}
	if f.Rows, err = l.Daily(ctx, f.Day, f.Zone); err != nil {
		return nil, usage(postgresTrouble(s, err))
	}
	if f.Choices, err = l.Choices(ctx, f.Day, f.Zone); err != nil {
		return nil, usage(postgresTrouble(s, err))
	}
	for _, choice := range f.Choices {
		if f.Versions[choice.Version] != nil {
			continue
		}
		version, err := l.Routing(ctx, choice.Version)
		if err != nil {
			return nil, fmt.Errorf("routing version %d: %w", choice.Version, err)
		}
		if f.Versions[choice.Version], err = storedRouting(&version); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// parseDay is noon of a day: midnight does not exist where clocks go forward at midnight.
func parseDay(day string, zone *time.Location) (time.Time, error) {
	noon, err := time.ParseInLocation(time.DateOnly+" 15", day+" 12", zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("--day %q is not a day: write for example 2026-11-21", day)
	}
	return noon, nil
}

// dailySheet lists the rows with every figure.
func dailySheet(d *report.Daily, as format) sheet {
	s := sheet{header: []string{
		"route", "channel", "configured_share", "effective_share", "first_choice", "first_choice_share", "fallback", "submitted", "accepted",
		"delivered", "failed", "unknown", "segments", "cost", "currency", "deviation", "p_value", "verdict",
		"unknown_segments", "unknown_cost", "undelivered", "no_receipt",
	}}
	for i := range d.Rows {
		r := &d.Rows[i]
		s.rows = append(s.rows, []string{
			r.Route, r.Channel, as.fraction(r.ConfiguredShare), as.fraction(r.EffectiveShare), number(r.FirstChoice), as.fraction(&r.FirstChoiceShare), number(r.Fallback),
			number(r.Submitted), number(r.Accepted), number(r.Delivered), number(r.Failed), number(r.Unknown), number(r.Segments),
			report.Money(r.CostMicros), r.Currency, as.fraction(r.Deviation), as.fraction(r.PValue), r.Verdict,
			number(r.UnknownSegments), report.Money(r.UnknownMicros), number(r.Undelivered), number(r.NoReceipt),
		})
	}
	return s
}

// printDaily draws one table per route, each with its verdict and its totals.
func (c *cli) printDaily(d *report.Daily) {
	if len(d.Rows) == 0 {
		fmt.Fprintf(c.out, "%s, %s: no message was received and none was sent.\n", d.Day, d.Timezone)
		return
	}
	fmt.Fprintf(c.out, "%s, %s\n", d.Day, d.Timezone)
	for from := 0; from < len(d.Rows); {
		to := from + 1
		for to < len(d.Rows) && d.Rows[to].Route == d.Rows[from].Route {
			to++
		}
		routeTable(d, d.Rows[from:to]).draw(c.out)
		from = to
	}
}

// routeTable is what fits a screen of a route's rows: shares in percent, and below the channels the totals.
func routeTable(d *report.Daily, rows []report.DailyRow) sheet {
	s := sheet{
		title: fmt.Sprintf("route %s: %s", rows[0].Route, verdict(&rows[0])),
		header: []string{
			"channel", "agreed", "first choice", "share", "fallback", "accepted", "delivered", "failed", "unknown", "segments", "cost",
		},
		right: []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, wrap: map[int]int{1: 14, 2: 9, 3: 7}, tight: true,
	}
	if slices.ContainsFunc(rows, func(r report.DailyRow) bool { return r.NoReceipt > 0 }) {
		s.header[6] += "\n(no\nreceipt)"
	}
	for i := range rows {
		r := &rows[i]
		s.rows = append(s.rows, []string{
			r.Channel, agreed(r), number(r.FirstChoice), percent(r.FirstChoiceShare), number(r.Fallback), number(r.Accepted),
			delivered(r.Delivered, r.NoReceipt), number(r.Failed), number(r.Unknown), number(r.Segments), amount(r.CostMicros, r.Currency),
		})
	}
	for _, t := range d.Totals {
		if t.Route == rows[0].Route {
			s.rows = append(s.rows, []string{
				"all", "", number(t.FirstChoice), "", number(t.Fallback), number(t.Accepted),
				delivered(t.Delivered, t.NoReceipt), number(t.Failed), number(t.Unknown), number(t.Segments), amount(t.CostMicros, t.Currency),
			})
		}
	}
	return s
}

// delivered is how many were, and below it those of which nobody knows.
func delivered(n, unknown int64) string {
	if unknown == 0 {
		return number(n)
	}
	return number(n) + "\n(" + number(unknown) + ")"
}

// verdict is that of a route, with the probability if there was anything to test.
func verdict(r *report.DailyRow) string {
	if r.PValue == nil {
		return r.Verdict
	}
	return fmt.Sprintf("%s (p %.4f)", r.Verdict, *r.PValue)
}

// amount writes money with its currency.
func amount(micros int64, currency string) string {
	return strings.TrimSpace(report.Money(micros) + " " + currency)
}

// agreed is a row's share in percent, and behind it the one that draws went by where health
// weighting had made it another.
func agreed(r *report.DailyRow) string {
	switch {
	case r.ConfiguredShare == nil:
		return ""
	case *r.EffectiveShare != *r.ConfiguredShare:
		return percent(*r.ConfiguredShare) + "\n(" + percent(*r.EffectiveShare) + ")"
	}
	return percent(*r.ConfiguredShare)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
