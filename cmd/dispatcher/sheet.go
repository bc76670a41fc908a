package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// sheet is a result as rows, for tables and CSV.
type sheet struct {
	title  string
	header []string
	rows   [][]string
	right  []int // columns, from 1, that hold figures
	// wrap bounds the width of columns, from 1, in a table, which should fit 120 characters.
	wrap map[int]int
	// tight omits the lines between columns, if there are many.
	tight bool
}

// draw writes the sheet as a table that fits the terminal, with colour only on a terminal.
func (s sheet) draw(out io.Writer) {
	_, _ = io.WriteString(direct(out), s.render(terminalWidth(out), isTerminal(out)))
}

// render is the sheet as a table of at most width characters; 0 is no bound. If figures leave no
// room for a table, the rows are written below each other. Hidden characters are escaped before
// anything is measured.
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

// titleLines breaks a title between words to fit a table of that width. The table library alone
// would break it anywhere. A word longer than the table is not broken.
func titleLines(title string, table int) string {
	return wrapped(title, table-utf8.RuneCountInString("│  │"))
}

// columns are the layouts of the columns.
func (s sheet) columns() []table.ColumnConfig {
	configs := make([]table.ColumnConfig, len(s.header))
	for i := range configs {
		configs[i] = table.ColumnConfig{
			Number: i + 1, WidthMax: s.wrap[i+1],
			WidthMaxEnforcer: wrapLines,
		}
		if slices.Contains(s.right, i+1) {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	return configs
}

// wrapLines wraps each line of a cell separately, so that faults on separate lines stay there.
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

// isTerminal reports whether out is a terminal, so that colour and progress make sense.
func isTerminal(out io.Writer) bool {
	f, ok := direct(out).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
