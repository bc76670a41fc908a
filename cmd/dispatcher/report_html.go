package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/plots"
	"dispatcher/cmd/dispatcher/internal/report"
)

//go:embed report.html.tmpl
var reportPage string

var reportTemplate = template.Must(template.New("report").Parse(reportPage))

// htmlTable is a sheet in the form of the page.
type htmlTable struct {
	Title  string
	Header []htmlCell
	Rows   [][]htmlCell
}

type htmlCell struct {
	Text  string
	Right bool
}

// mostHTMLRows is how many rows the page lists; the other formats have all.
const mostHTMLRows = 1000

// writeHTML writes one self-contained page: no script, no other file, no network.
func writeHTML(
	out io.Writer, r *report.Range, figures *report.RangeFigures, f *rangeFlags,
) error {
	page := struct {
		Title, Note string
		Keep        string
		Checkpoint  string
		Sentences   []string
		Plots       []plots.Plot
		Tables      []htmlTable // below the plots
		Table       htmlTable
		More        int
	}{
		Title: "Report " + rangeDates(r), Note: rangeTitle(r),
		Keep: keepCheckpoint, Checkpoint: r.Checkpoint,
	}
	if len(r.Rows) > 0 {
		byChannel, byHour := report.PlottedRanges(figures)
		var err error
		if page.Plots, err = plots.Range(&byChannel, &byHour); err != nil {
			return err
		}
		page.Sentences = rangeSentences(r)
		for _, s := range waterfallTables(&byChannel) {
			s.title = "R" + strings.TrimPrefix(s.title, "r") // a heading
			page.Tables = append(page.Tables, tableOf(&s))
		}
		table := f.table(r, true)
		if page.More = len(table.rows) - mostHTMLRows; page.More > 0 {
			table.rows = table.rows[:mostHTMLRows]
		}
		page.Table = tableOf(&table)
	}
	for _, s := range correctionTables(r.CorrectedDays) {
		page.Tables = append(page.Tables, tableOf(&s))
	}
	if err := reportTemplate.Execute(out, &page); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	return nil
}

func tableOf(s *sheet) (t htmlTable) {
	cells := func(texts []string) []htmlCell {
		row := make([]htmlCell, len(texts))
		for i, text := range texts {
			row[i] = htmlCell{text, slices.Contains(s.right, i+1)}
		}
		return row
	}
	t.Title, t.Header = s.title, cells(s.header)
	for _, row := range s.rows {
		t.Rows = append(t.Rows, cells(row))
	}
	return t
}
