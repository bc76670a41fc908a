package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/ledger"
)

// listFlags say who changes a list, and why.
type listFlags struct {
	whom
	author, reason string
	as             format
}

func (f *listFlags) addTo(cmd *cobra.Command, c *cli) {
	f.whom.addTo(cmd)
	cmd.Flags().StringVar(&f.reason, "reason", "",
		"why; the history shows it (required); do not write numbers into it")
	c.authorFlag(cmd.Flags(), &f.author)
	f.as.addTo(cmd.Flags())
}

// by refuses a change without a reason.
func (f *listFlags) by() (control.By, error) {
	switch {
	case strings.TrimSpace(f.reason) == "":
		return control.By{}, misused(errors.New(`--reason is missing: write why, for ` +
			`example --reason "asked by letter"`))
	case strings.TrimSpace(f.author) == "":
		return control.By{}, misused(errors.New("--author is empty: name who makes the change"))
	}
	if err := control.CheckReason(f.reason); err != nil {
		return control.By{}, misused(err)
	}
	return control.By{Author: f.author, Reason: f.reason}, nil
}

// listChanged is the result of a change of a list.
type listChanged struct {
	control.OptOutsChanged
	// Skipped are the lines of an import without a valid number.
	Skipped int `json:"skipped"`
}

func (c *cli) optOutsAddCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "add NUMBER... --tenant NAME --reason TEXT",
		Short: "Put numbers on a tenant's opt-out list",
		Args:  arguments(1, anyNumber),
	}
	f.addTo(cmd, c)
	cmd.RunE = work(func(ctx context.Context, args []string) error {
		return c.changeOptOuts(ctx, cmd, &f, args, false, putOn)
	})
	return cmd
}

func (c *cli) optOutsRemoveCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "remove NUMBER... --tenant NAME --reason TEXT",
		Short: "Take numbers off a tenant's opt-out list",
		Long: `Takes numbers off a tenant's opt-out list, so that messages go out to them again.
Do so only when the subscriber asked for it. That a number was on the list stays on record.`,
		Args: arguments(1, anyNumber),
	}
	f.addTo(cmd, c)
	cmd.RunE = work(func(ctx context.Context, args []string) error {
		return c.changeOptOuts(ctx, cmd, &f, args, true, takenOff)
	})
	return cmd
}

// putOn says how many of the numbers were put on a list.
func putOn(done *listChanged) string { return done.sentence("put on the list", "on it before") }

// takenOff says how many of the numbers were taken off a list.
func takenOff(done *listChanged) string { return done.sentence("taken off the list", "not on it") }

// sentence says what happened to the numbers; unchanged says why the others did not change.
func (l *listChanged) sentence(changed, unchanged string) string {
	rest := int64(l.Numbers) - l.Changed
	said := fmt.Sprintf("%d of %d %s", l.Changed, l.Numbers, changed)
	switch {
	case rest <= 0:
		return said + "."
	case l.Changed == 0 && rest == 1:
		return said + "; it was " + unchanged + "."
	case l.Changed == 0:
		return said + "; they were " + unchanged + "."
	case rest == 1:
		return said + "; the other was " + unchanged + "."
	}
	return said + "; the others were " + unchanged + "."
}

// changeOptOuts makes one change; sentence describes it.
func (c *cli) changeOptOuts(
	ctx context.Context, cmd *cobra.Command, f *listFlags, args []string, remove bool,
	sentence func(*listChanged) string,
) error {
	by, err := f.by()
	if err != nil {
		return err
	}
	recipients, err := f.numbers(c, cmd, args)
	if err != nil {
		return err
	}
	return c.withLedger(ctx, func(l *database) error {
		changed, err := control.ChangeOptOuts(ctx, l.Ledger, &control.OptOutChange{
			Tenant: f.tenant, Source: ledger.ByCommand, Numbers: recipients, Remove: remove,
		}, by)
		if err != nil {
			return err
		}
		done := &listChanged{OptOutsChanged: *changed}
		return c.printListChange(done, f.as, sentence(done))
	})
}

func (c *cli) printListChange(done *listChanged, as format, sentence string) error {
	if as == formatTable {
		fmt.Fprintln(c.out, sentence)
		return nil
	}
	return as.write(c.out, done, list(as, []listChanged{*done},
		keys[listChanged]("", "tenant", "numbers", "changed", "skipped")...))
}

// importBatch is how many numbers one transaction puts on the list.
const importBatch = 5000

func (c *cli) optOutsImportCommand() *cobra.Command {
	var f listFlags
	var skip bool
	cmd := &cobra.Command{
		Use:   "import [FILE] --tenant NAME --reason TEXT",
		Short: "Put the numbers of a CSV file, or of standard input, on a tenant's opt-out list",
		Long: `Puts many numbers on a tenant's opt-out list, for example those of a former system.
Each line has a number in its first column; columns behind it are not read, and neither is a first
line whose first column is a heading, without any digit. If a line holds no number, nothing
is imported, unless you give --skip. To import a file again does no harm.`,
		Args: arguments(0, 1),
	}
	f.addTo(cmd, c)
	cmd.Flags().BoolVar(&skip, "skip", false, "skip lines that hold no number")
	cmd.RunE = work(func(ctx context.Context, args []string) error {
		by, err := f.by()
		if err != nil {
			return err
		}
		r, err := f.check(c, cmd)
		if err != nil {
			return err
		}
		recipients, bad, err := c.importedNumbers(args, r)
		switch {
		case err != nil:
			return usage(err)
		case len(bad) > 0 && !skip:
			return usage(badLines(bad))
		}
		return c.withLedger(ctx, func(l *database) error {
			return c.importOptOuts(ctx, l, &f, by, recipients, len(bad))
		})
	})
	return cmd
}

func (c *cli) importOptOuts(
	ctx context.Context, l *database, f *listFlags, by control.By, recipients []string, skipped int,
) error {
	done := listChanged{Skipped: skipped}
	done.Tenant, done.Numbers = f.tenant, len(recipients)
	for some := range slices.Chunk(recipients, importBatch) {
		changed, err := control.ChangeOptOuts(ctx, l.Ledger, &control.OptOutChange{
			Tenant: f.tenant, Source: ledger.ByImport, Numbers: some,
		}, by)
		if err != nil {
			return fmt.Errorf("%d numbers were put on the list before this; import the file "+
				"again: %w", done.Changed, postgresTrouble(l.settings, err))
		}
		done.Changed += changed.Changed
	}
	return c.printListChange(&done, f.as, imported(&done))
}

// imported also says how many lines have no valid number.
func imported(done *listChanged) string {
	switch done.Skipped {
	case 0:
		return putOn(done)
	case 1:
		return putOn(done) + " 1 line was left out."
	}
	return fmt.Sprintf("%s %d lines were left out.", putOn(done), done.Skipped)
}

// importedNumbers reads a file, or standard input, and lists the lines without a valid number.
func (c *cli) importedNumbers(
	args []string, r numbers.Region,
) (recipients []string, bad []int, err error) {
	in := c.in
	if len(args) > 0 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, nil, fmt.Errorf("%w; correct the path", err)
		}
		defer file.Close() //nolint:errcheck // It was only read.
		in = file
	}
	return readNumbers(in, r)
}

// readNumbers reads the first column of a CSV.
func readNumbers(in io.Reader, r numbers.Region) (recipients []string, bad []int, err error) {
	rows := csv.NewReader(withoutMark(in))
	rows.FieldsPerRecord, rows.LazyQuotes, rows.ReuseRecord = -1, true, true
	for first := true; ; first = false {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return recipients, bad, nil
		}
		if parse, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, nil, fmt.Errorf("line %d is not CSV: %w", parse.Line, parse.Err)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the numbers: %w", err)
		}
		line, _ := rows.FieldPos(0)
		// the separator of spreadsheets where the comma is the decimal point
		column, _, _ := strings.Cut(row[0], ";")
		n, ok := numbers.Typed(r, column)
		switch {
		case ok:
			recipients = append(recipients, n)
		case first && !strings.ContainsAny(column, "0123456789"):
		default:
			bad = append(bad, line)
		}
	}
}

// badLines names the lines but does not show their content.
func badLines(lines []int) error {
	shown := make([]string, min(len(lines), 10))
	for i := range shown {
		shown[i] = fmt.Sprint(lines[i])
	}
	more := ""
	if len(lines) > len(shown) {
		more = fmt.Sprintf(" and %d more", len(lines)-len(shown))
	}
	return fmt.Errorf("no number with plus and country code in line %s%s: nothing was imported. "+
		"Correct the lines, give --default-region for numbers without country code, or leave "+
		"them out with --skip",
		strings.Join(shown, ", "), more)
}
