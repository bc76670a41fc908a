package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (c *cli) ambiguousCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ambiguous",
		Short: "List and settle messages of which nobody knows whether a provider took them",
	}
	cmd.AddCommand(c.ambiguousListCommand(), c.ambiguousSettleCommand())
	return cmd
}

// doubtLine is one doubt as the command shows it.
type doubtLine struct {
	ID          string    `json:"id"`
	Lane        string    `json:"lane"`
	Tenant      string    `json:"tenant"`
	Channel     string    `json:"channel"`
	Attempt     int       `json:"attempt"`
	Segments    int       `json:"segments"`
	PriceMicros int64     `json:"price_micros"`
	Currency    string    `json:"currency"`
	Code        string    `json:"code"`
	Step        string    `json:"step"`
	OpenedAt    time.Time `json:"opened_at"`
	Until       time.Time `json:"until"`
	Asked       int       `json:"asked"`
	Verdict     string    `json:"verdict"` // empty while it is open
	Author      string    `json:"author"`
	Note        string    `json:"note"`
}

func (c *cli) ambiguousListCommand() *cobra.Command {
	as := format(formatTable)
	var filter ambiguousFilter
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what nobody knows",
		Long: `Lists submissions that a provider may or may not have taken, oldest first: those about which the dispatcher
still tries to find out, and with --all also those that ended without anybody knowing. Those are booked as possibly billable.
Then follow submissions that their provider answered it did not take, and that its receipts call delivered: those of the
last seven days, with --all all.`,
		Args: arguments(0, 0),
		RunE: work(func(ctx context.Context, _ []string) error {
			if limit < 1 {
				return misused(errors.New("--limit must be above 0"))
			}
			return c.ambiguousList(ctx, &filter, limit, as)
		}),
	}
	filter.add(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", 100, "so many at most")
	cmd.Flags().Var(&as, "format", "output format")
	return cmd
}

func (c *cli) ambiguousList(ctx context.Context, f *ambiguousFilter, limit int, as format) error {
	filter, err := f.parse()
	if err != nil {
		return misused(err)
	}
	s, l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	doubts, err := l.Ambiguous(ctx, &filter, limit)
	if err != nil {
		return usage(postgresTrouble(s, err))
	}
	total, err := l.CountAmbiguous(ctx, &filter)
	if err != nil {
		return usage(postgresTrouble(s, err))
	}
	records, err := l.Contradictions(ctx, &filter, limit)
	if err != nil {
		return usage(postgresTrouble(s, err))
	}
	contradictions := contradictionLines(records)
	if as == formatTable && len(doubts) == 0 && len(contradictions) == 0 {
		fmt.Fprintln(c.out, "No message is ambiguous.")
		return nil
	}
	lines := make([]doubtLine, len(doubts))
	for i := range doubts {
		d := &doubts[i]
		lines[i] = doubtLine{
			ID: d.ID, Lane: d.Lane, Tenant: d.Tenant, Channel: d.Channel, Attempt: d.Attempt, Segments: d.Segments, PriceMicros: d.PriceMicros,
			Currency: d.Currency, Code: d.Code, Step: string(d.Step), OpenedAt: d.OpenedAt, Until: d.Until, Asked: d.Asked,
			Verdict: string(d.ResolvedAs), Author: d.Author, Note: d.Note,
		}
	}
	if as == formatTable {
		if len(lines) > 0 {
			doubtTable(lines).draw(c.out)
			fmt.Fprintf(c.out, "%d of %d\n", len(lines), total)
		}
		if len(contradictions) > 0 {
			contradictionTable(contradictions).draw(c.out)
		}
		return nil
	}
	rows := doubtSheet(lines, as)
	rows.rows = append(rows.rows, contradictionRows(contradictions)...)
	return as.print(c.out, struct {
		Ambiguous      []doubtLine         `json:"ambiguous"`
		Total          int64               `json:"total"`
		Contradictions []contradictionLine `json:"contradictions"`
	}{lines, total, contradictions}, rows)
}

// doubtSheet has everything in CSV; a table leaves out what only scripts want, so that it fits a terminal.
func doubtSheet(lines []doubtLine, as format) sheet {
	if as != formatCSV {
		return doubtTable(lines)
	}
	s := sheet{header: []string{
		"id", "lane", "tenant", "channel", "attempt", "segments", "price_micros", "currency", "code", "step", "opened_at", "until", "asked", "verdict", "author", "note",
	}}
	for i := range lines {
		d := &lines[i]
		s.rows = append(s.rows, []string{
			d.ID, d.Lane, d.Tenant, d.Channel, number(int64(d.Attempt)), number(int64(d.Segments)), number(d.PriceMicros), d.Currency, d.Code, d.Step,
			d.OpenedAt.Format(time.RFC3339), d.Until.Format(time.RFC3339), number(int64(d.Asked)), d.Verdict, d.Author, d.Note,
		})
	}
	return s
}

func doubtTable(lines []doubtLine) sheet {
	s := sheet{
		header: []string{"id", "lane", "attempt", "price", "code", "since (UTC)", "found out (UTC)"}, tight: true,
		right: []int{4}, wrap: map[int]int{1: 24, 2: 13, 3: 18, 4: 13, 5: 12, 6: 10, 7: 14},
	}
	for i := range lines {
		d := &lines[i]
		s.rows = append(s.rows, []string{
			d.ID, d.Lane, number(int64(d.Attempt)) + " on " + d.Channel, amount(d.PriceMicros, d.Currency), d.Code, d.OpenedAt.Format(time.DateTime), d.standing(),
		})
	}
	return s
}

// standing is how it is tried to find out, and until when; once that has ended, the verdict.
func (d *doubtLine) standing() string {
	if d.Verdict != "" {
		return d.Verdict
	}
	return d.Step + ", until " + d.Until.Format(time.DateTime)
}
