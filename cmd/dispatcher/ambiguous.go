package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
)

func (c *cli) ambiguousCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ambiguous",
		Short: "List and settle submissions that a provider may or may not have taken",
	}
	cmd.AddCommand(c.ambiguousListCommand(), c.ambiguousSettleCommand())
	return cmd
}

// ambiguityLine is one ambiguous submission as the command shows it.
type ambiguityLine struct {
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
	Login       string    `json:"login"` // of the database; empty where it was not recorded
	Via         string    `json:"via"`   // how it came in; empty where it was not recorded
}

func (c *cli) ambiguousListCommand() *cobra.Command {
	var as format
	var filter ambiguousFilter
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List submissions that a provider may or may not have taken",
		Long: `Lists submissions that a provider may or may not have taken, oldest first: those
about which the dispatcher still tries to find out, and with --all also those that stayed unknown
for good, which count as possibly billable. Then come submissions that the provider denied and that
its receipts call delivered: those of the last seven days, or with --all all of them.`,
		Args: arguments(0, 0),
		RunE: work(func(ctx context.Context, _ []string) error {
			if limit < 1 {
				return misused(errors.New("--limit must be above 0"))
			}
			parsed, err := filter.parse(time.Now())
			if err != nil {
				return misused(err)
			}
			return c.withLedger(ctx, func(l *database) error {
				return c.ambiguousList(ctx, l, &parsed, limit, as)
			})
		}),
	}
	filter.add(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", 100, "at most this many")
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) ambiguousList(
	ctx context.Context, l *database, filter *ledger.AmbiguousFilter, limit int, as format,
) error {
	found, err := l.Ambiguities.List(ctx, filter, limit)
	if err != nil {
		return err
	}
	total, err := l.Ambiguities.Count(ctx, filter)
	if err != nil {
		return err
	}
	contradictions, err := control.Contradictions(ctx, l.Ledger, filter, limit)
	if err != nil {
		return err
	}
	if as == formatTable && len(found) == 0 && len(contradictions) == 0 {
		fmt.Fprintln(c.out, nothingAmbiguous(filter))
		return nil
	}
	lines := make([]ambiguityLine, len(found))
	for i := range found {
		lines[i] = newAmbiguityLine(&found[i])
	}
	if as == formatTable {
		if len(lines) > 0 {
			ambiguitySheet(lines, as).draw(c.out)
			fmt.Fprintf(c.out, "%d of %d\n", len(lines), total)
		}
		if len(contradictions) > 0 {
			contradictionSheet(contradictions).draw(c.out)
		}
		return nil
	}
	all := slices.Clone(lines)
	for i := range contradictions {
		all = append(all, contradictedLine(&contradictions[i]))
	}
	return as.write(c.out, struct {
		Ambiguous      []ambiguityLine         `json:"ambiguous"`
		Total          int64                   `json:"total"`
		Contradictions []control.Contradiction `json:"contradictions"`
	}{lines, total, contradictions}, ambiguitySheet(all, as))
}

// nothingAmbiguous says that a list is empty, and what it leaves out.
func nothingAmbiguous(filter *ledger.AmbiguousFilter) string {
	if filter.Ended {
		return "No message is ambiguous."
	}
	return "No message is ambiguous. --all also lists those that stayed unknown."
}

func newAmbiguityLine(d *ledger.AmbiguityRecord) ambiguityLine {
	return ambiguityLine{
		ID: d.ID, Lane: d.Lane, Tenant: d.Tenant, Channel: d.Channel, Attempt: d.Attempt,
		Segments: d.Segments, PriceMicros: d.PriceMicros, Currency: d.Currency, Code: d.Code,
		Step: string(d.Step), OpenedAt: d.OpenedAt, Until: d.Until, Asked: d.Asked,
		Verdict: string(d.ResolvedAs), Author: d.Author, Note: d.Note,
		Login: d.Login, Via: string(d.Via),
	}
}

// ambiguitySheet has every field in CSV; a table leaves out those without room.
func ambiguitySheet(lines []ambiguityLine, as format) sheet {
	columns := keys[ambiguityLine](formatCSV, "id", "lane", "tenant", "channel", "attempt",
		"segments", "price_micros", "currency", "code", "step", "opened_at", "until", "asked",
		"verdict", "author", "note", "login", "via")
	s := list(as, lines, append(columns, []column[ambiguityLine]{
		{only: formatTable, key: "id", width: 24},
		{only: formatTable, key: "lane", width: 13},
		{only: formatTable, head: "attempt", width: 18, cell: func(d *ambiguityLine) any {
			return onChannel(d.Attempt, d.Channel)
		}},
		{
			only: formatTable, head: "price", width: 13, right: true,
			cell: func(d *ambiguityLine) any {
				return report.Amount(d.PriceMicros, d.Currency)
			},
		},
		{only: formatTable, key: "code", width: 12},
		{only: formatTable, key: "opened_at", head: "since (UTC)", width: 10},
		{only: formatTable, head: "found out (UTC)", width: 14, cell: func(d *ambiguityLine) any {
			return d.progress()
		}},
	}...)...)
	s.tight = true
	return s
}

// onChannel is an attempt with its channel, as one cell.
func onChannel(attempt int, channel string) string {
	return fmt.Sprintf("%d on %s", attempt, channel)
}

// progress is how the dispatcher tries to resolve the ambiguity, and until when; then the verdict.
func (l *ambiguityLine) progress() string {
	if l.Verdict != "" {
		return l.Verdict
	}
	return l.Step + ", until " + l.Until.Format(time.DateTime)
}

// verdictContradicted is the verdict in the CSV rows of contradictions.
const verdictContradicted = "contradicted"

// contradictedLine is a contradiction in the columns of ambiguous submissions, for CSV.
func contradictedLine(c *control.Contradiction) ambiguityLine {
	return ambiguityLine{
		ID: c.ID, Lane: c.Lane, Tenant: c.Tenant, Channel: c.Channel, Attempt: c.Attempt,
		Code: c.Code,
		Step: string(ledger.AwaitReceipt), OpenedAt: c.ReceivedAt, Until: c.ReceivedAt,
		Verdict: verdictContradicted, Note: contradictionNote(c),
	}
}

// contradictionNote says what the contradiction is.
func contradictionNote(c *control.Contradiction) string {
	note := "answered " + c.Outcome + ", then delivered by receipt"
	if c.Reference != "" {
		note += " " + c.Reference
	}
	if c.PossibleDuplicate {
		note += "; possible duplicate"
	}
	return note
}

// contradictionSheet is the table of contradictions; in CSV they are among the ambiguous
// submissions.
func contradictionSheet(lines []control.Contradiction) sheet {
	s := list(formatTable, lines, []column[control.Contradiction]{
		{key: "id", width: 24},
		{key: "lane", width: 13},
		{head: "attempt", width: 18, cell: func(c *control.Contradiction) any {
			return onChannel(c.Attempt, c.Channel)
		}},
		{head: "answer", width: 14, cell: func(c *control.Contradiction) any {
			return joined([]string{c.Outcome, c.Code})
		}},
		{key: "reference", width: 16},
		{key: "received_at", head: "receipt (UTC)", width: 10},
		{head: "message", width: 18, cell: func(c *control.Contradiction) any {
			if c.PossibleDuplicate {
				return c.State + ", possible duplicate"
			}
			return c.State
		}},
	}...)
	s.title = "Delivered, although the provider had answered that it did not take it"
	s.tight = true
	return s
}

// ambiguousFilter are the flags that select ambiguous messages.
type ambiguousFilter struct {
	all                                       bool
	channel, lane, tenant, code, since, until string
}

func (f *ambiguousFilter) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.all, "all", false, "also those that stayed unknown for good")
	flags.StringVar(&f.channel, "channel", "", "only those of this channel")
	flags.StringVar(&f.lane, "lane", "", "only those of this lane")
	flags.StringVar(&f.tenant, "tenant", "", "only those of this tenant")
	flags.StringVar(&f.code, "code", "", "only those without an answer for this reason, such as "+
		"timeout")
	flags.StringVar(&f.since, "since", "", "only those that became ambiguous since then: a time "+
		"such as 2026-11-21T10:00:00Z, or for how long, such as 2h")
	flags.StringVar(&f.until, "until", "", "only those that became ambiguous before then; --before "+
		"is the same")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if other, ok := map[string]string{"before": "until", "outcome": "as"}[name]; ok {
			name = other
		}
		return pflag.NormalizedName(name)
	})
}

// given reports whether a flag restricts the selection, as settling several together requires.
func (f *ambiguousFilter) given() bool {
	return f.channel+f.lane+f.tenant+f.code+f.since+f.until != ""
}

func (f *ambiguousFilter) parse(now time.Time) (ledger.AmbiguousFilter, error) {
	parsed := ledger.AmbiguousFilter{
		Ended: f.all, Channel: f.channel, Lane: f.lane, Tenant: f.tenant, Code: f.code,
	}
	err := timeRange(f.since, f.until, now, &parsed.Since, &parsed.Before)
	return parsed, err
}
