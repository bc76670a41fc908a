package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"dispatcher/cmd/dispatcher/internal/report"
)

// Formats of commands that print data.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatCSV   = "csv"
)

// format is the value of --format; it refuses anything but the three formats.
type format string

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "table|json|csv" }
func (f *format) Set(s string) error {
	switch s {
	case formatTable, formatJSON, formatCSV:
		*f = format(s)
		return nil
	}
	return errors.New("must be table, json or csv")
}

// addTo defines --format with the table as its default.
func (f *format) addTo(flags *pflag.FlagSet) {
	*f = formatTable
	flags.Var(f, "format", "output format")
}

// write writes data in the format: value as JSON, or the sheet as table or CSV.
func (f format) write(out io.Writer, value any, s sheet) error {
	switch f {
	case formatJSON:
		return printJSON(out, value)
	case formatCSV:
		return writeCSV(out, append([][]string{s.header}, s.rows...)...)
	}
	s.draw(out)
	return nil
}

// warn prints what readers of the result should know: below a table, and for CSV on standard error,
// so that it does not mix with the rows. JSON contains it already.
func (f format) warn(c *cli, warnings []string) {
	for _, warning := range warnings {
		switch f {
		case formatTable:
			fmt.Fprintln(c.out, paragraph(c.out, warning))
		case formatCSV:
			fmt.Fprintln(c.err, "dispatcher:", warning)
		}
	}
}

func printJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// writeCSV is the only function with which commands write CSV.
func writeCSV(out io.Writer, rows ...[]string) error {
	w := csv.NewWriter(out)
	for _, row := range rows {
		safe := make([]string, len(row))
		for i, field := range row {
			safe[i] = inert(field)
		}
		if err := w.Write(safe); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	if w.Flush(); w.Error() != nil {
		return fmt.Errorf("write CSV: %w", w.Error())
	}
	return nil
}

// inert prevents a spreadsheet from reading a field as a formula: it puts a single quote before
// characters that begin one (OWASP, CSV Injection). A plain number stays a number.
func inert(field string) string {
	if field == "" || !strings.ContainsAny(field[:1], "=+-@\t\r") ||
		plainNumber.MatchString(field) {
		return field
	}
	return "'" + field
}

// plainNumber is a number with or without sign, fraction and exponent.
var plainNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// fraction writes a fractional number: with four decimals in tables, with all in CSV. It is empty
// for nil.
func (f format) fraction(n *float64) string {
	switch {
	case n == nil:
		return ""
	case f == formatCSV:
		return strconv.FormatFloat(*n, 'g', -1, 64)
	}
	return strconv.FormatFloat(*n, 'f', 4, 64)
}

// share writes a part of a whole: in tables as percent with two decimals, in CSV as the fraction
// with all its digits, as in JSON. It is empty for nil.
func (f format) share(part *float64) string {
	if part == nil || f == formatCSV {
		return f.fraction(part)
	}
	return report.Percent(*part)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// orEmpty is the string that s points to; empty for nil.
func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
