package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/admission"
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
day ended: what was agreed, what the draws chose, what the channels carried and what it cost. It says whether the
draws were fair, and whether the channels carried what was agreed, each for itself. The exit code is 1 when a
route did not keep its agreement. docs/audit.md explains every column.`,
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
	} else if err := as.print(c.out, daily, dailySheet(&daily, as)); err != nil {
		return err
	}
	if daily.Found() {
		return &codedError{code: exitFailed}
	}
	return nil
}

// dailyFigures reads what the report is made of.
func dailyFigures(ctx context.Context, l *ledger.Ledger, s *config.Settings, day string) (*report.Figures, error) {
	current, err := currentRouting(ctx, l, s)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	f := &report.Figures{Current: current, Versions: map[int64]*config.Routing{}}
	if f.Day, f.Zone, err = businessDay(ctx, l, s, day, now); err != nil {
		return nil, err
	}
	if admission.Day.Start(f.Day, f.Zone).After(now) {
		return nil, usage(fmt.Errorf("--day %s has not begun in %s: there is nothing to report yet", day, f.Zone))
	}
	f.Complete = !admission.Day.End(f.Day, f.Zone).After(now)
	if f.Rows, err = l.Daily(ctx, f.Day, f.Zone); err != nil {
		return nil, usage(postgresTrouble(s, err))
	}
	if f.Choices, err = l.Choices(ctx, f.Day, f.Zone); err != nil {
		return nil, usage(postgresTrouble(s, err))
	}
	if f.Carried, err = l.CarriedOn(ctx, f.Day, f.Zone); err != nil {
		return nil, usage(postgresTrouble(s, err))
	}
	return f, dailyVersions(ctx, l, f)
}

// dailyVersions adds the routing documents that the figures are held against.
func dailyVersions(ctx context.Context, l *ledger.Ledger, f *report.Figures) error {
	var wanted []int64
	for i := range f.Choices {
		wanted = append(wanted, f.Choices[i].Version)
	}
	for i := range f.Carried {
		wanted = append(wanted, f.Carried[i].Version)
	}
	slices.Sort(wanted)
	for _, number := range slices.Compact(wanted) {
		version, err := l.Routing(ctx, number)
		if err != nil {
			return fmt.Errorf("routing version %d: %w", number, err)
		}
		if f.Versions[number], err = storedRouting(&version); err != nil {
			return err
		}
	}
	return nil
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
		"carried", "carried_share", "agreed_share", "delivered_share", "draws_verdict", "traffic_verdict", "moved",
	}}
	for i := range d.Rows {
		r := &d.Rows[i]
		s.rows = append(s.rows, []string{
			r.Route, r.Channel, as.share(r.ConfiguredShare), as.share(r.EffectiveShare), number(r.FirstChoice), as.share(&r.FirstChoiceShare), number(r.Fallback),
			number(r.Submitted), number(r.Accepted), number(r.Delivered), number(r.Failed), number(r.Unknown), number(r.Segments),
			report.Money(r.CostMicros), r.Currency, as.fraction(r.Deviation), as.fraction(r.PValue), r.Verdict,
			number(r.UnknownSegments), report.Money(r.UnknownMicros), number(r.Undelivered), number(r.NoReceipt),
			number(r.Carried), as.share(&r.CarriedShare), as.share(r.AgreedShare), as.share(&r.DeliveredShare),
			r.DrawsVerdict, r.TrafficVerdict, moves(r.Moved),
		})
	}
	return s
}

// moves writes causes for CSV: "no_slot a 800;rejected - 3".
func moves(all []report.Move) string {
	out := make([]string, len(all))
	for i, m := range all {
		out[i] = m.Cause + " " + cmp.Or(m.Channel, "-") + " " + number(m.Messages)
	}
	return strings.Join(out, ";")
}

// printDaily draws one table per route, each with its totals and, below it, what the verdict rests on.
func (c *cli) printDaily(d *report.Daily) {
	if len(d.Rows) == 0 {
		fmt.Fprintf(c.out, "%s, %s: no message was received and none was sent.\n", d.Day, d.Timezone)
		return
	}
	fmt.Fprintf(c.out, "%s, %s%s\n", d.Day, d.Timezone, soFar(d))
	for at, from := 0, 0; from < len(d.Rows); at++ {
		to := from + 1
		for to < len(d.Rows) && d.Rows[to].Route == d.Rows[from].Route {
			to++
		}
		routeTable(d, &d.Routes[at], d.Rows[from:to]).draw(c.out)
		for _, sentence := range d.Routes[at].Text {
			fmt.Fprintln(c.out, paragraph(c.out, sentence))
		}
		from = to
	}
}

// soFar says that a day is not over.
func soFar(d *report.Daily) string {
	if d.Complete {
		return ""
	}
	return ": the day is not over, these are its figures so far"
}

// routeTable is what fits a screen of a route's rows: shares in percent, and below the channels the totals.
func routeTable(d *report.Daily, v *report.RouteVerdict, rows []report.DailyRow) sheet {
	s := sheet{
		title: fmt.Sprintf("route %s: %s", v.Route, verdict(v)),
		header: []string{
			"channel", "agreed", "first choice", "drawn", "fallback", "carried", "share", "delivered", "failed", "segments", "cost",
		},
		right: []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, wrap: map[int]int{1: 13, 2: 9, 3: 7}, tight: true,
	}
	if slices.ContainsFunc(rows, func(r report.DailyRow) bool { return r.NoReceipt > 0 }) {
		s.header[7] += "\n(no\nreceipt)"
	}
	if slices.ContainsFunc(rows, func(r report.DailyRow) bool { return r.Unknown > 0 }) {
		s.header[8] += "\n(no\nanswer)"
	}
	for i := range rows {
		r := &rows[i]
		s.rows = append(s.rows, []string{
			r.Channel, agreed(r), number(r.FirstChoice), report.Percent(r.FirstChoiceShare), number(r.Fallback),
			number(r.Carried), report.Percent(r.CarriedShare),
			bracketed(r.Delivered, r.NoReceipt), bracketed(r.Failed, r.Unknown), number(r.Segments), amount(r.CostMicros, r.Currency),
		})
	}
	for _, t := range d.Totals {
		if t.Route == rows[0].Route {
			s.rows = append(s.rows, []string{
				"all", "", number(t.FirstChoice), "", number(t.Fallback), number(t.Carried), "",
				bracketed(t.Delivered, t.NoReceipt), bracketed(t.Failed, t.Unknown), number(t.Segments), amount(t.CostMicros, t.Currency),
			})
		}
	}
	return s
}

// bracketed is a number, and below it those of which nobody knows.
func bracketed(n, unknown int64) string {
	if unknown == 0 {
		return number(n)
	}
	return number(n) + "\n(" + number(unknown) + ")"
}

// verdictWords are the verdicts of a route as people read them.
var verdictWords = map[string]string{
	report.Kept: "traffic kept", report.Moved: "traffic moved",
	report.Fair: "draws fair", report.Unfair: "draws not fair", report.OneWay: "one channel with a weight",
}

// verdict is that of a route: of the traffic, then of the draws with the probability if there was
// anything to test.
func verdict(v *report.RouteVerdict) string {
	if v.TrafficVerdict == report.NoWeight {
		return "no weights, no agreed shares"
	}
	text := cmp.Or(verdictWords[v.TrafficVerdict], "too few messages") + "; " + cmp.Or(verdictWords[v.DrawsVerdict], "too few draws")
	if v.PValue != nil {
		text += " (" + report.Probability(*v.PValue) + ")"
	}
	return text
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
		return report.Percent(*r.ConfiguredShare) + "\n(" + report.Percent(*r.EffectiveShare) + ")"
	}
	return report.Percent(*r.ConfiguredShare)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
