package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/ledger"
)

// dayClosed is what report close prints.
type dayClosed struct {
	Day      string    `json:"day"`
	Timezone string    `json:"timezone"`
	Revision int       `json:"revision"`
	Changes  int64     `json:"changes"`
	At       time.Time `json:"at"`
}

func (c *cli) reportCloseCommand() *cobra.Command {
	var as format
	var day string
	cmd := &cobra.Command{
		Use:   "close --day DAY",
		Short: "Close a day that is over, or bring its figures up to date",
		Long: `Adds up a business day that is over and keeps its figures, as the dispatcher does by
itself an hour after the end of each day, and again as the day grows old. What has changed since the
day was closed before, such as late receipts and ambiguous messages that were settled, becomes a
correction. To close a day once more changes nothing when nothing has changed.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			if day == "" {
				return usage(errors.New("--day is missing: name the day to close, such as 2026-11-21"))
			}
			return c.withLedger(ctx, func(l *database) error {
				return c.closeDay(ctx, l, day, as)
			})
		}),
	}
	cmd.Flags().StringVar(&day, "day", "", "day such as 2026-11-21")
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) closeDay(ctx context.Context, l *database, date string, as format) error {
	now := time.Now()
	noon, zone, err := businessDay(ctx, l, date, now)
	if err != nil {
		return err
	}
	day := ledger.NewBusinessDay(noon, zone)
	if day.To.After(now) {
		return usage(fmt.Errorf("--day %s is not over in %s: it ends at %s", date, zone,
			day.To.UTC().Format(instant)))
	}
	show, wipe := c.progress("adding up hours", int64(day.To.Sub(day.From)/time.Hour))
	closing, ours, err := l.Reports.Close(ctx, day, show)
	wipe()
	if err != nil {
		return err
	}
	if !ours {
		return errors.New("another process is closing a day just now: try again in a minute")
	}
	done := dayClosed{
		Day: day.Date, Timezone: day.Zone, Revision: closing.Revision, Changes: closing.Changes,
		At: closing.At.UTC(),
	}
	if as == formatTable {
		fmt.Fprintln(c.out, done.sentence())
		return nil
	}
	return as.write(c.out, done, list(formatCSV, []dayClosed{done},
		keys[dayClosed]("", "day", "timezone", "revision", "changes", "at")...))
}

func (d *dayClosed) sentence() string {
	figures := counted(d.Changes, "figure", "figures")
	switch {
	case d.Revision == 1:
		return fmt.Sprintf("%s (%s) is closed, with %s.", d.Day, d.Timezone, figures)
	case d.Changes == 0:
		return fmt.Sprintf("%s (%s) is as it was when it was closed or corrected last.", d.Day,
			d.Timezone)
	}
	return fmt.Sprintf("%s (%s) is corrected in %s.", d.Day, d.Timezone, figures)
}
