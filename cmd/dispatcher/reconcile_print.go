package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
)

// reconciled is the result for a file. Scripts rely on the JSON names.
type reconciled struct {
	Channel  string    `json:"channel"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Complete bool      `json:"complete"`
	DryRun   bool      `json:"dry_run"`
	Digest   string    `json:"digest"` // SHA-256 of the file
	Lines    int64     `json:"lines"`
	Skipped  int       `json:"skipped"` // rows that are no messages
	// Unverified is the preset, if no document confirms the names of its columns; else empty.
	Unverified string `json:"unverified"`
	// Matched counts attempts with a line, OursOnly billed attempts without one, TheirsOnly lines
	// without an attempt, Differing the other differences, Ambiguous the attempts whose outcome is
	// unknown.
	Matched    int64 `json:"matched"`
	OursOnly   int64 `json:"ours_only"`
	TheirsOnly int64 `json:"theirs_only"`
	Differing  int64 `json:"differing"`
	Ambiguous  int64 `json:"ambiguous"`
	// Differences are between attempts and their lines, Missing what the file lacks, Extra what the
	// ledger lacks; each up to --limit.
	Differences []differenceLine `json:"differences"`
	Missing     []differenceLine `json:"missing"`
	Extra       []differenceLine `json:"extra"`
	// Resolvable are the ambiguous submissions whose outcome the file shows. Resolved is how many of
	// them were settled; Left lists those that could not be.
	Resolvable []resolvableLine `json:"resolvable"`
	Resolved   int64            `json:"resolved"`
	Left       []control.Left   `json:"left"`
	Totals     []totalLine      `json:"totals"`
	// Signed is the stored result; Changed says that this command has stored it.
	Signed  *signedLine `json:"signed"`
	Changed bool        `json:"changed"`
}

// differenceLine is one difference. Line and Reference are those of the file.
type differenceLine struct {
	ID        string     `json:"id"`
	Attempt   int        `json:"attempt"`
	Field     string     `json:"field"`
	Ours      string     `json:"ours"`
	Theirs    string     `json:"theirs"`
	Currency  string     `json:"currency"`
	Line      int        `json:"line"`
	Reference string     `json:"reference"`
	At        *time.Time `json:"at"`
}

type resolvableLine struct {
	ID        string    `json:"id"`
	Attempt   int       `json:"attempt"`
	As        string    `json:"as"`
	Line      int       `json:"line"`
	Reference string    `json:"reference"`
	At        time.Time `json:"at"`
}

type totalLine struct {
	Currency     string `json:"currency"`
	OursMicros   int64  `json:"ours_micros"`
	TheirsMicros *int64 `json:"theirs_micros"` // null where the file has no price
	// DifferenceMicros is how much more the provider charges than we recorded.
	DifferenceMicros *int64 `json:"difference_micros"`
}

type signedLine struct {
	ID       int64     `json:"id"`
	Revision int       `json:"revision"`
	At       time.Time `json:"at"`
	Author   string    `json:"author"`
	Reason   string    `json:"reason"`
}

// list fills in what was found.
func (r *reconciler) list(ctx context.Context) error {
	f, s := &r.found, &r.sums
	f.Channel, f.From, f.To, f.Complete = r.channel, r.period.From, r.period.To, r.complete
	f.DryRun, f.Digest, f.Lines, f.Matched = r.dryRun, r.digest, s.Lines, s.Matched
	f.OursOnly, f.TheirsOnly, f.Differing = s.OursOnly, s.TheirsOnly, s.Differing
	f.Ambiguous = s.Ambiguous
	f.Differences, f.Missing, f.Extra = []differenceLine{}, []differenceLine{}, []differenceLine{}
	all, err := r.store.Differences(ctx, r.limit)
	if err != nil {
		return err
	}
	for i := range all {
		d := &all[i]
		line := differenceLine{
			ID: d.ID, Attempt: d.Attempt, Field: d.Kind, Ours: d.Ours, Theirs: d.Theirs,
			Currency: d.Currency, Line: d.Line, Reference: d.Reference,
		}
		if at := d.At.UTC(); at.Unix() != 0 {
			line.At = &at
		}
		switch d.Kind {
		case "ours_only":
			f.Missing = append(f.Missing, line)
		case "theirs_only", "duplicate":
			f.Extra = append(f.Extra, line)
		default:
			f.Differences = append(f.Differences, line)
		}
	}
	f.Resolvable, f.Totals = []resolvableLine{}, []totalLine{}
	for _, p := range r.proofs {
		line := resolvableLine{
			ID: p.ID, Attempt: p.Attempt, As: "not_taken", Line: p.Line, Reference: p.Reference,
			At: p.At.UTC(),
		}
		if p.Taken {
			line.As = "taken"
		}
		f.Resolvable = append(f.Resolvable, line)
	}
	for _, t := range s.Totals {
		line := totalLine{Currency: t.Currency, OursMicros: t.OursMicros, TheirsMicros: t.TheirMicros}
		if t.TheirMicros != nil {
			line.DifferenceMicros = new(*t.TheirMicros - t.OursMicros)
		}
		f.Totals = append(f.Totals, line)
	}
	if b := r.before; b != nil {
		f.Signed = &signedLine{b.ID, b.Revision, b.At.UTC(), b.Author, b.Reason}
	}
	if f.Left == nil {
		f.Left = []control.Left{}
	}
	return nil
}

// differs reports whether there is anything to investigate.
func (r *reconciled) differs() bool {
	return r.OursOnly+r.TheirsOnly+r.Differing > 0 || len(r.Left) > 0
}

// dates are the days of a period of whole days, else its two ends.
func (r *reconciled) dates(zone *time.Location) string {
	first, end := r.From.In(zone), r.To.In(zone)
	if first.Equal(admission.Day.Start(first, zone)) && end.Equal(admission.Day.Start(end, zone)) {
		last := end.AddDate(0, 0, -1)
		return fmt.Sprintf("%s to %s, %s", first.Format(time.DateOnly), last.Format(time.DateOnly), zone)
	}
	return r.From.Format(instant) + " to " + r.To.Format(instant)
}

// show prints the result; a CSV row is a difference.
func (r *reconciled) show(c *cli, zone *time.Location, as format) error {
	all := append(append(append([]differenceLine{}, r.Differences...), r.Missing...), r.Extra...)
	sheet := list(as, all, append(keys[differenceLine](formatCSV, "id", "attempt", "field", "ours",
		"theirs", "currency", "line", "reference", "at"), []column[differenceLine]{
		{only: formatTable, key: "field", head: "differs"},
		{only: formatTable, key: "id", width: 24},
		{only: formatTable, key: "ours", right: true},
		{only: formatTable, key: "theirs", right: true},
		{only: formatTable, key: "currency", head: ""},
		{only: formatTable, head: "line", right: true, cell: func(d *differenceLine) any {
			if d.Line == 0 {
				return nil
			}
			return d.Line
		}},
		{only: formatTable, key: "reference", width: 24},
	}...)...)
	if as != formatTable {
		return as.write(c.out, r, sheet)
	}
	fmt.Fprintf(c.out, "%s, %s: %s of the file, %s.\n", r.Channel, r.dates(zone),
		counted(r.Lines, "line", "lines"),
		counted(r.Matched, "attempt matched", "attempts matched"))
	if r.Unverified != "" {
		fmt.Fprintln(c.out, paragraph(c.out, "The preset "+r.Unverified+" is unverified: no document "+
			"of the vendor lists the columns of such a file. Compare the totals with the invoice."))
	}
	if len(all) > 0 {
		sheet.draw(c.out)
		if rest := r.OursOnly + r.TheirsOnly + r.Differing - int64(len(all)); rest > 0 {
			fmt.Fprintf(c.out, "and %d more; --limit 0 lists all.\n", rest)
		}
	}
	fmt.Fprintf(c.out, "Only ours: %d. Only theirs: %d. Other differences: %d. Ambiguous: %d.\n",
		r.OursOnly, r.TheirsOnly, r.Differing, r.Ambiguous)
	r.printResolved(c)
	if len(r.Totals) > 0 {
		list(as, r.Totals, []column[totalLine]{
			{key: "currency"},
			{key: "ours_micros", head: "ours", style: micros},
			{key: "theirs_micros", head: "theirs", style: micros},
			{key: "difference_micros", head: "difference", style: micros},
		}...).draw(c.out)
	}
	fmt.Fprintln(c.out, paragraph(c.out, r.sentence()))
	return nil
}

func (r *reconciled) printResolved(c *cli) {
	if len(r.Resolvable) == 0 {
		return
	}
	list(formatTable, r.Resolvable, []column[resolvableLine]{
		{key: "id", width: 24},
		{key: "at", head: "sent (UTC)"},
		{key: "as", head: "the file says"},
		{key: "reference", width: 24},
	}...).draw(c.out)
	for _, l := range r.Left {
		fmt.Fprintf(c.out, "Message %s %s.\n", l.ID, l.Why)
	}
	n := counted(int64(len(r.Resolvable)), "ambiguous submission", "ambiguous submissions")
	if r.DryRun {
		fmt.Fprintf(c.out, "%s would be settled.\n", n)
	} else {
		fmt.Fprintf(c.out, "%d of %s settled.\n", r.Resolved, n)
	}
}

// sentence says what was stored.
func (r *reconciled) sentence() string {
	switch s := r.Signed; {
	case s == nil:
		return "Nothing was changed. Without --dry-run the result is stored, signed by --author."
	case r.Changed:
		return fmt.Sprintf("Signed off by %s as number %d (%s).", s.Author, s.ID, s.Reason)
	default:
		return fmt.Sprintf("Nothing was changed: this file was signed off by %s on %s as number %d "+
			"(%s).", s.Author, s.At.Format(instant), s.ID, cmp.Or(s.Reason, "no reason"))
	}
}
