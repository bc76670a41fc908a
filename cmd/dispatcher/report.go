package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/report"
)

func (c *cli) reportCommand() *cobra.Command {
	var as format
	var day string
	run := work(func(ctx context.Context, _ []string) error {
		return c.withLedger(ctx, func(l *database) error {
			return c.daily(ctx, l, day, as)
		})
	})
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Report a day: shares against what was agreed, segments and cost",
		Long: `Counts one business day, cut at midnight of the time zone that the routing document
had when the day ended: what was agreed, what the draws chose, what the channels carried and what
it cost. It says whether the draws were fair, and whether the channels carried what was agreed,
each for itself. The exit code is 1 when a route did not keep its agreement. docs/audit.md
explains every column.`,
		Args: cobra.NoArgs,
		RunE: run,
	}
	cmd.Flags().StringVar(&day, "day", "", "day such as 2026-11-21 (default today)")
	as.addTo(cmd.Flags())
	cmd.AddCommand(c.reportDailyCommand(cmd.Long), c.reportPeriodsCommand(report.Week),
		c.reportPeriodsCommand(report.Month), c.reportContractsCommand(), c.reportCloseCommand(),
		c.reportPublishCommand())
	return cmd
}

// daily prints a day as a table or as JSON. CSV is that of a range, so that files can be
// concatenated.
func (c *cli) daily(ctx context.Context, l *database, day string, as format) error {
	if as == formatCSV {
		f := rangeFlags{unit: report.Day, in: inMessages, as: reportFormat{as}}
		f.ofDay(day)
		return c.reportRange(ctx, l, &f)
	}
	_, wipe := c.progress("adding up", 1)
	figures, err := dailyFigures(ctx, l, day)
	wipe()
	if err != nil {
		return err
	}
	daily := report.NewDaily(figures)
	if as == formatTable {
		c.printDaily(&daily)
	} else if err := printJSON(c.out, daily); err != nil {
		return err
	}
	if daily.Found() {
		return failed(nil)
	}
	return nil
}

// moves writes causes for CSV: "no_slot:1d:messages a 800;rejected - 3".
func moves(all []report.Move) string {
	out := make([]string, len(all))
	for i, m := range all {
		out[i] = m.Stored() + " " + cmp.Or(m.Channel, "-") + " " + number(m.Messages)
	}
	return strings.Join(out, ";")
}

// printDaily prints one table per route, each with its totals and, below it, the basis of the
// verdict.
func (c *cli) printDaily(d *report.Daily) {
	if len(d.Rows) == 0 {
		fmt.Fprintf(c.out, "%s, %s: no message was received and none was sent.\n", d.Day,
			d.Timezone)
		return
	}
	fmt.Fprintf(c.out, "%s, %s%s\n", d.Day, d.Timezone, asOf(d))
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
	var corrected []report.CorrectedFigure
	for i := range d.Corrections {
		corrected = append(corrected, d.Corrections[i].Figures...)
	}
	if len(corrected) > 0 {
		correctionTable(corrected).draw(c.out)
	}
	printCheckpoint(c.out, d.Checkpoint)
}

// keepCheckpoint precedes a checkpoint in a report.
const keepCheckpoint = "Checkpoint of the log of hashes. Whoever keeps it can show later whether " +
	"rows were changed: dispatcher audit verify --checkpoint FILE."

// printCheckpoint ends a report. It prints the checkpoint in full, so that a copy on paper is
// enough.
func printCheckpoint(out io.Writer, text string) {
	if text != "" {
		fmt.Fprintf(out, "%s\n\n%s", paragraph(out, keepCheckpoint), text)
	}
}

// asOf says how final the figures are: so far, or as the day was closed and corrected since.
func asOf(d *report.Daily) string {
	switch {
	case !d.Complete:
		return ": the day is not over, these are its figures so far"
	case d.ClosedAt == nil:
		return ": not closed yet"
	}
	text := ": closed " + d.ClosedAt.UTC().Format(instant)
	if n := len(d.Corrections); n > 0 {
		text += fmt.Sprintf(", corrected %s, last %s", often(n),
			d.Corrections[n-1].At.UTC().Format(instant))
	}
	return text
}

// often is a number of times in words.
func often(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// routeTable has what fits a screen of a route's rows, with shares in percent, and the totals below
// the channels.
func routeTable(d *report.Daily, v *report.RouteVerdict, rows []report.DailyRow) sheet {
	all := slices.Clone(rows)
	for _, t := range d.Totals {
		if t.Route == v.Route {
			all = append(all, report.DailyRow{
				Route: totalsRow, Channel: "all", FirstChoice: t.FirstChoice,
				Carried:   t.Carried,
				Delivered: t.Delivered, NoReceipt: t.NoReceipt, Failed: t.Failed,
				Unknown:  t.Unknown,
				Segments: t.Segments, CostMicros: t.CostMicros, Currency: t.Currency,
			})
		}
	}
	part := func(of func(*report.DailyRow) float64) func(*report.DailyRow) any {
		return func(r *report.DailyRow) any {
			if r.Route == totalsRow {
				return nil
			}
			return report.Percent(of(r))
		}
	}
	delivered, failed := "delivered", "failed"
	if slices.ContainsFunc(rows, func(r report.DailyRow) bool { return r.NoReceipt > 0 }) {
		delivered += "\n(no\nreceipt)"
	}
	if slices.ContainsFunc(rows, func(r report.DailyRow) bool { return r.Unknown > 0 }) {
		failed += "\n(no\nanswer)"
	}
	s := list(formatTable, all, []column[report.DailyRow]{
		{key: "channel", width: 13},
		{head: "agreed", right: true, width: 9, cell: func(r *report.DailyRow) any {
			return agreed(r)
		}},
		{key: "first_choice", head: "first choice", width: 7},
		{head: "drawn", right: true, cell: part(func(r *report.DailyRow) float64 {
			return r.FirstChoiceShare
		})},
		{key: "carried"},
		{head: "share", right: true, cell: part(func(r *report.DailyRow) float64 {
			return r.CarriedShare
		})},
		{head: delivered, right: true, cell: func(r *report.DailyRow) any {
			return bracketed(r.Delivered, r.NoReceipt)
		}},
		{head: "share", right: true, cell: part(func(r *report.DailyRow) float64 {
			return r.DeliveredShare
		})},
		{head: failed, right: true, cell: func(r *report.DailyRow) any {
			return bracketed(r.Failed, r.Unknown)
		}},
		{key: "segments"},
		{head: "cost", right: true, cell: func(r *report.DailyRow) any {
			return report.Amount(r.CostMicros, r.Currency)
		}},
	}...)
	s.title, s.tight = fmt.Sprintf("route %s: %s", v.Route, verdict(v)), true
	return s
}

// correctionTable says what each correction of a closed day changed.
func correctionTable(figures []report.CorrectedFigure) sheet {
	amount := func(f *report.CorrectedFigure, n int64) any {
		if strings.HasSuffix(f.Figure, "_micros") {
			return report.Amount(n, f.Currency)
		}
		return number(n)
	}
	s := list(formatTable, figures, []column[report.CorrectedFigure]{
		{head: "corrected", cell: func(f *report.CorrectedFigure) any {
			return f.At.UTC().Format(instant)
		}},
		{key: "route"},
		{key: "channel", width: 13},
		{head: "figure", cell: func(f *report.CorrectedFigure) any { return correctedWords[f.Figure] }},
		{head: "was", right: true, cell: func(f *report.CorrectedFigure) any { return amount(f, f.Was) }},
		{head: "is", right: true, cell: func(f *report.CorrectedFigure) any { return amount(f, f.Now) }},
	}...)
	s.title = "corrections since the day was closed"
	return s
}

// correctionTables are the tables of corrected days.
func correctionTables(days []report.CorrectedDay) (out []sheet) {
	for i := range days {
		if figures := days[i].Figures; len(figures) > 0 {
			s := correctionTable(figures)
			s.title = "Corrections since the day was closed: " + days[i].Day // a heading
			out = append(out, s)
		}
	}
	return out
}

// correctedWords name figures in tables.
var correctedWords = map[string]string{
	"carried":          "carried",
	"attempts":         "attempts",
	"accepted":         "accepted",
	"failed":           "failed",
	"unknown":          "no answer",
	"unsent":           "never sent",
	"pending":          "without outcome",
	"delivered":        "delivered",
	"undelivered":      "undelivered",
	"no_receipt":       "no receipt",
	"segments":         "segments",
	"cost_micros":      "cost",
	"unknown_segments": "segments without answer",
	"unknown_micros":   "cost without answer",
}

// totalsRow is the route in the row of totals. No route has this name.
const totalsRow = ""

// bracketed is a number, and below it how many are unknown.
func bracketed(n, unknown int64) string {
	if unknown == 0 {
		return number(n)
	}
	return number(n) + "\n(" + number(unknown) + ")"
}

// verdictWords are the verdicts of a route for display.
var verdictWords = map[string]string{
	report.Kept: "traffic kept", report.Moved: "traffic moved",
	report.Fair: "fair draws", report.Unfair: "unfair draws",
	report.OneWay: "one channel with a weight", report.Sticky: "draws by recipient",
}

// verdict is the verdict of a route: on the traffic, then on the draws, with the probability if
// there was anything to test.
func verdict(v *report.RouteVerdict) string {
	if v.TrafficVerdict == report.NoWeight {
		return "no weights, no agreed shares"
	}
	text := cmp.Or(verdictWords[v.TrafficVerdict], "too few messages") + "; " +
		cmp.Or(verdictWords[v.DrawsVerdict], "too few draws")
	if v.PValue != nil {
		text += " (" + report.Probability(*v.PValue) + ")"
	}
	return text
}

// agreed is a row's agreed share in percent, followed by the effective share if health weighting
// changed it.
func agreed(r *report.DailyRow) string {
	switch {
	case r.ConfiguredShare == nil:
		return ""
	case *r.EffectiveShare != *r.ConfiguredShare:
		return report.Percent(*r.ConfiguredShare) + "\n(" + report.Percent(*r.EffectiveShare) + ")"
	}
	return report.Percent(*r.ConfiguredShare)
}

// parseDay is app.ParseDate for --day.
func parseDay(day string, zone *time.Location) (time.Time, error) {
	noon, err := app.ParseDate(day, zone)
	if err != nil {
		return noon, fmt.Errorf("--day %w", err)
	}
	return noon, nil
}

// dailyFigures reads the data of the report.
func dailyFigures(ctx context.Context, l *database, day string) (*report.Figures, error) {
	current, err := currentRouting(ctx, l)
	if err != nil {
		return nil, err
	}
	f, err := lookup.Daily(ctx, l.Ledger, current, "--day", day, time.Now())
	return f, inCommands(err)
}

// businessDay is noon of a day and its time zone, see lookup.BusinessDay. Before the first start
// the zone is that of the file that will be applied then.
func businessDay(
	ctx context.Context, l *database, day string, now time.Time,
) (time.Time, *time.Location, error) {
	current, err := currentRouting(ctx, l)
	if err != nil {
		return now, nil, err
	}
	noon, zone, err := lookup.BusinessDay(ctx, l.Ledger, current, "--day", day, now)
	return noon, zone, inCommands(err)
}
