package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

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

// sheet is a result as rows: the same for the table and for CSV.
type sheet struct {
	title  string
	header []string
	rows   [][]string
	right  []int // columns, from 1, that hold figures
	// wrap bounds the width of columns, from 1, in a table: a table fits 120 characters.
	wrap map[int]int
	// tight leaves out the lines between columns, where there are many.
	tight bool
}

// fraction writes a number between two whole ones: four digits behind the point where people read it, all
// of them in CSV. It is empty for none.
func (f format) fraction(n *float64) string {
	switch {
	case n == nil:
		return ""
	case f == formatCSV:
		return strconv.FormatFloat(*n, 'g', -1, 64)
	}
	return strconv.FormatFloat(*n, 'f', 4, 64)
}

// share writes a part of a whole: percent with two digits behind the point where people read it, the
// fraction with all its digits in CSV, as in JSON. It is empty for none.
func (f format) share(part *float64) string {
	if part == nil || f == formatCSV {
		return f.fraction(part)
	}
	return report.Percent(*part)
}

// warn prints what whoever reads the result should know: below a table, and beside a CSV on standard
// error, where it does not get between the rows. JSON holds it already.
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

// print writes data in the asked format. JSON prints value, the others the sheet.
func (f format) print(out io.Writer, value any, s sheet) error {
	switch f {
	case formatJSON:
		return printJSON(out, value)
	case formatCSV:
		return writeCSV(out, append([][]string{names(s.header)}, s.rows...)...)
	}
	s.draw(out)
	return nil
}

// names are the words of a header as the names of columns: without blanks.
func names(header []string) []string {
	out := make([]string, len(header))
	for i, word := range header {
		out[i] = strings.ReplaceAll(word, " ", "_")
	}
	return out
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

// draw writes the sheet as a table that fits the terminal; colour only there.
func (s sheet) draw(out io.Writer) {
	_, _ = io.WriteString(direct(out), s.render(terminalWidth(out), isTerminal(out)))
}

// render is the sheet as a table of at most so many characters; 0 is no bound. Where figures leave no
// room for a table, the rows stand below each other. Hidden characters are escaped before anything is
// measured.
func (s sheet) render(width int, bold bool) string {
	s, ok := s.visible().fitting(width)
	if !ok {
		return s.records(width)
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatDefault
	if bold {
		t.Style().Color.Header = text.Colors{text.Bold}
	}
	t.Style().Options.SeparateColumns = !s.tight
	t.SetColumnConfigs(s.columns())
	t.AppendHeader(cells(s.header))
	for _, row := range s.rows {
		t.AppendRow(cells(row))
	}
	if s.title != "" {
		border, _, _ := strings.Cut(t.Render(), "\n")
		t.SetTitle(titleLines(s.title, utf8.RuneCountInString(border)))
	}
	return t.Render() + "\n"
}

// titleLines breaks a title between words to fit into a table of that width: the table alone would break it anywhere. A word that is
// longer than the table stays whole here.
func titleLines(title string, table int) string {
	return wrapped(title, table-utf8.RuneCountInString("│  │"))
}

// columns says how the columns are laid out.
func (s sheet) columns() []table.ColumnConfig {
	configs := make([]table.ColumnConfig, len(s.header))
	for i := range configs {
		configs[i] = table.ColumnConfig{Number: i + 1, WidthMax: s.wrap[i+1], WidthMaxEnforcer: wrapLines}
		if slices.Contains(s.right, i+1) {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	return configs
}

// wrapLines wraps each line of a cell for itself, so that faults that stand on lines of their own stay there.
func wrapLines(cell string, width int) string {
	lines := strings.Split(cell, "\n")
	for i := range lines {
		lines[i] = text.WrapSoft(lines[i], width)
	}
	return strings.Join(lines, "\n")
}

// visible is the sheet with hidden characters escaped.
func (s sheet) visible() sheet {
	s.title = visible(s.title)
	rows := make([][]string, len(s.rows))
	for i := range s.rows {
		rows[i] = make([]string, len(s.rows[i]))
		for j, cell := range s.rows[i] {
			rows[i][j] = visible(cell)
		}
	}
	s.rows = rows
	return s
}

func cells(texts []string) table.Row {
	row := make(table.Row, len(texts))
	for i, s := range texts {
		row[i] = s
	}
	return row
}

// isTerminal reports whether out is a terminal, hence whether colour and progress make sense.
func isTerminal(out io.Writer) bool {
	f, ok := direct(out).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
