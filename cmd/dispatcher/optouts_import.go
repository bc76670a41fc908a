package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/ledger"
)

// importBatch is how many numbers one transaction puts on the list.
const importBatch = 5000

func (c *cli) optOutsImportCommand() *cobra.Command {
	var f listFlags
	var skip bool
	cmd := &cobra.Command{
		Use:   "import [FILE]",
		Short: "Put the numbers of a CSV file, or of standard input, on a tenant's opt-out list",
		Long: `Puts many numbers on a tenant's opt-out list, such as those of the system before. Each line has a number in its first
column; columns behind it are not read, and neither is a first line whose first column is a heading, without any digit. With a line
that holds no number nothing is imported, unless --skip is given. To import a file again does no harm.`,
		Args: arguments(0, 1),
	}
	f.addTo(cmd, c)
	cmd.Flags().BoolVar(&skip, "skip", false, "leave out lines that hold no number")
	cmd.RunE = work(func(ctx context.Context, args []string) error {
		by, err := f.listing(ledger.ByImport)
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
		return c.importOptOuts(ctx, by, recipients, len(bad), f.as)
	})
	return cmd
}

func (c *cli) importOptOuts(ctx context.Context, by ledger.Listing, recipients []string, skipped int, as format) error {
	s, l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	done := listChanged{Tenant: by.Tenant, Numbers: len(recipients), Skipped: skipped}
	for some := range slices.Chunk(recipients, importBatch) {
		n, err := l.OptOuts(ctx, by, some)
		done.Changed += n
		if err != nil {
			return fmt.Errorf("%d numbers were put on the list before this; import the file again: %w", done.Changed, postgresTrouble(s, err))
		}
	}
	return c.printListChange(&done, as, imported(&done))
}

// imported also says how many lines hold no number.
func imported(done *listChanged) string {
	switch done.Skipped {
	case 0:
		return putOn(done)
	case 1:
		return putOn(done) + " 1 line was left out."
	}
	return fmt.Sprintf("%s %d lines were left out.", putOn(done), done.Skipped)
}

// importedNumbers reads all of a file, or of standard input, and lists the lines that hold no number.
func (c *cli) importedNumbers(args []string, r numbers.Region) (recipients []string, bad []int, err error) {
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

// readNumbers takes the first column of a CSV.
func readNumbers(in io.Reader, r numbers.Region) (recipients []string, bad []int, err error) {
	buffered := bufio.NewReader(in)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) { // spreadsheets put it in front of UTF-8
		_, _ = buffered.Discard(len(mark)) // they were peeked at
	}
	rows := csv.NewReader(buffered)
	rows.FieldsPerRecord, rows.LazyQuotes, rows.ReuseRecord = -1, true, true
	for first := true; ; first = false {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return recipients, bad, nil
		}
		if parse, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, nil, fmt.Errorf("line %d is no CSV: %w", parse.Line, parse.Err)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the numbers: %w", err)
		}
		line, _ := rows.FieldPos(0)
		column, _, _ := strings.Cut(row[0], ";") // as spreadsheets separate columns where the comma is the decimal point
		n, ok := recipient(r, column)
		switch {
		case ok:
			recipients = append(recipients, n)
		case first && !strings.ContainsAny(column, "0123456789"):
		default:
			bad = append(bad, line)
		}
	}
}

// badLines names lines and not what stands in them.
func badLines(lines []int) error {
	shown := make([]string, min(len(lines), 10))
	for i := range shown {
		shown[i] = fmt.Sprint(lines[i])
	}
	more := ""
	if len(lines) > len(shown) {
		more = fmt.Sprintf(" and %d more", len(lines)-len(shown))
	}
	return fmt.Errorf("no number with plus and country code in line %s%s: nothing was imported. Correct the lines, give --default-region for numbers without country code, or leave them out with --skip",
		strings.Join(shown, ", "), more)
}
