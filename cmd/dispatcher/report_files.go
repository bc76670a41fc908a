package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/spf13/pflag"
	"github.com/xuri/excelize/v2"

	"dispatcher/cmd/dispatcher/internal/report"
)

// Formats that only reports of ranges have, besides those of all commands.
const (
	formatXLSX    = "xlsx"
	formatParquet = "parquet"
	formatHTML    = "html"
)

// fileFormats are the formats of a report that can be written to a file.
var fileFormats = []string{formatJSON, formatCSV, formatXLSX, formatParquet, formatHTML}

// reportFormat is the value of --format of reports of ranges.
type reportFormat struct{ format }

// Type names the value in help.
func (f *reportFormat) Type() string { return "table|" + strings.Join(fileFormats, "|") }

// Set reads the name of a format.
func (f *reportFormat) Set(s string) error {
	if s != formatTable && !slices.Contains(fileFormats, s) {
		return errors.New("must be table, json, csv, xlsx, parquet or html")
	}
	f.format = format(s)
	return nil
}

// addTo defines --format and --output. Without --format the file's extension decides.
func (f *reportFormat) addTo(flags *pflag.FlagSet, output *string) {
	flags.Var(f, "format", "output format (default that of --output, else table)")
	flags.StringVar(output, "output", "", "file to write, such as week.xlsx (default standard output)")
}

// fileOnly reports whether the daily report of one day lacks the format.
func (f *reportFormat) fileOnly() bool { return f.binary() || f.format == formatHTML }

// of is the format asked for, else that of the file's extension.
func (f *reportFormat) of(output string) (format, error) {
	ending := strings.TrimPrefix(filepath.Ext(output), ".")
	switch {
	case f.format != "":
		return f.format, nil
	case output == "":
		return formatTable, nil
	case slices.Contains(fileFormats, ending):
		return format(ending), nil
	}
	return "", usage(fmt.Errorf("--output %s: name the format with --format, or by the end of the "+
		"file's name: .%s", output, strings.Join(fileFormats, ", .")))
}

// binary reports whether a terminal cannot show the format.
func (f format) binary() bool { return f == formatXLSX || f == formatParquet }

// checkpointSuffix is added to the name of a CSV file for the file with its checkpoint. The other
// formats have the checkpoint in them.
const checkpointSuffix = ".checkpoint"

// writeReport writes a range to the file, or to standard output. The file appears only once all of
// it has been written.
func (c *cli) writeReport(r *report.Range, figures *report.RangeFigures, f *rangeFlags) error {
	as, err := f.as.of(f.output)
	if err != nil {
		return err
	}
	if f.output == "" {
		if as.binary() && isTerminal(c.out) {
			return usage(fmt.Errorf("--format %s is not for a terminal: name a file with --output", as))
		}
		return writeRange(c.out, as, r, figures, f)
	}
	file, err := os.CreateTemp(filepath.Dir(f.output), ".report-*")
	if err != nil {
		return usage(fmt.Errorf("--output %s: %w", f.output, err))
	}
	defer os.Remove(file.Name()) //nolint:errcheck // It is there only if something failed.
	out := showing(file)
	err = writeRange(out, as, r, figures, f)
	out.finish()
	err = cmp.Or(err, file.Chmod(0o644), file.Close())
	if err == nil && as == formatCSV && r.Checkpoint != "" {
		//nolint:gosec // As the file.
		err = os.WriteFile(f.output+checkpointSuffix, []byte(r.Checkpoint), 0o644)
	}
	if err == nil {
		err = os.Rename(file.Name(), f.output)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.output, err)
	}
	return nil
}

// writeRange writes a range in a format.
func writeRange(
	out io.Writer, as format, r *report.Range, figures *report.RangeFigures, f *rangeFlags,
) error {
	switch as {
	case formatTable:
		printRange(out, r, f)
		return nil
	case formatXLSX:
		return writeXLSX(direct(out), r)
	case formatParquet:
		return writeParquet(direct(out), r)
	case formatHTML:
		return writeHTML(out, r, figures, f)
	}
	return as.write(out, r, list(as, rangeRecords(r), allKeys[rangeRecord]()...))
}

// reportCSV writes the rows of a range as --format csv does, for the console.
func reportCSV(out io.Writer, r *report.Range) error {
	shown := showing(out)
	defer shown.finish()
	return writeRange(shown, formatCSV, r, nil, nil)
}

// writeParquet writes the rows. The checkpoint is metadata of the file.
func writeParquet(out io.Writer, r *report.Range) error {
	var options []parquet.WriterOption
	if r.Checkpoint != "" {
		options = append(options, parquet.KeyValueMetadata("checkpoint", r.Checkpoint))
	}
	return parquet.Write(out, rangeRecords(r), options...)
}

// writeXLSX writes a workbook: the rows, with figures as numbers, then the totals, the verdicts and
// the checkpoint, if there is one.
func writeXLSX(out io.Writer, r *report.Range) error {
	book := excelize.NewFile()
	defer book.Close() //nolint:errcheck // It has no file.
	err := cmp.Or(book.SetSheetName("Sheet1", "rows"),
		fillSheet(book, "rows", rangeRecords(r)),
		fillSheet(book, "totals", totalRecords(r)),
		fillSheet(book, "verdicts", verdictRecords(r)))
	if err == nil && r.Checkpoint != "" {
		err = fillSheet(book, "checkpoint", checkpointRecords(r))
	}
	if err == nil {
		err = book.Write(out)
	}
	if err != nil {
		return fmt.Errorf("write a workbook: %w", err)
	}
	return nil
}

// fillSheet writes a sheet with the keys as its header and a row for each record.
func fillSheet[R any](book *excelize.File, name string, records []R) error {
	if _, err := book.NewSheet(name); err != nil { // an existing one is used
		return err
	}
	w, err := book.NewStreamWriter(name)
	if err != nil {
		return err
	}
	fields := reflect.VisibleFields(reflect.TypeFor[R]())
	widths := make([]float64, len(fields))
	head := make([]any, len(fields))
	for i, column := range allKeys[R]() {
		head[i], widths[i] = column.key, float64(max(len(column.key), 10)+3)
	}
	styles, err := sheetStyles(book)
	if err != nil {
		return err
	}
	for i, width := range widths {
		if err := w.SetColWidth(i+1, i+1, width); err != nil {
			return err
		}
	}
	if err := w.SetPanes(&excelize.Panes{
		Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft",
	}); err != nil {
		return err
	}
	if err := w.SetRow("A1", head, excelize.RowOpts{StyleID: styles.head}); err != nil {
		return err
	}
	for i := range records {
		row := make([]any, len(fields))
		of := reflect.ValueOf(&records[i]).Elem()
		for j := range fields {
			row[j] = styles.cell(fields[j].Name, of.Field(j))
		}
		if err := w.SetRow(fmt.Sprintf("A%d", i+2), row); err != nil {
			return err
		}
	}
	return w.Flush()
}

type workbookStyles struct{ head, money, share int }

func sheetStyles(book *excelize.File) (s workbookStyles, err error) {
	if s.head, err = book.NewStyle(&excelize.Style{Font: &excelize.Font{Bold: true}}); err != nil {
		return s, err
	}
	decimals, percent := "#,##0.00####", "0.00%"
	if s.money, err = book.NewStyle(&excelize.Style{CustomNumFmt: &decimals}); err != nil {
		return s, err
	}
	s.share, err = book.NewStyle(&excelize.Style{CustomNumFmt: &percent})
	return s, err
}

// cell is the value of a field. Text stays text: no cell is a formula.
func (s *workbookStyles) cell(name string, v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	switch {
	case v.Type() == reflect.TypeFor[money]():
		return excelize.Cell{StyleID: s.money, Value: float64(v.Int()) / 1e6}
	case v.CanFloat() && strings.Contains(name, "Share"):
		return excelize.Cell{StyleID: s.share, Value: v.Float()}
	}
	return v.Interface()
}

// totalRecord is a total in the form of files. Its columns are those of the rows that can be added.
type totalRecord struct {
	Period      string `json:"period"`
	Currency    string `json:"currency"`
	FirstChoice int64  `json:"first_choice"`
	Carried     int64  `json:"carried"`
	Delivered   int64  `json:"delivered"`

	Attempts    int64 `json:"attempts"`
	Fallback    int64 `json:"fallback"`
	Retries     int64 `json:"retries"`
	Resends     int64 `json:"resends"`
	Further     int64 `json:"further"`
	Submitted   int64 `json:"submitted"`
	Accepted    int64 `json:"accepted"`
	Failed      int64 `json:"failed"`
	Unknown     int64 `json:"unknown"`
	Unsent      int64 `json:"unsent"`
	Pending     int64 `json:"pending"`
	Undelivered int64 `json:"undelivered"`
	NoReceipt   int64 `json:"no_receipt"`

	FirstChoiceSegments int64 `json:"first_choice_segments"`
	Segments            int64 `json:"segments"`
	Cost                money `json:"cost"`
	UnknownSegments     int64 `json:"unknown_segments"`
	UnknownCost         money `json:"unknown_cost"`
	DeliveredSegments   int64 `json:"delivered_segments"`
	DeliveredCost       money `json:"delivered_cost"`
	FirstChoiceCost     money `json:"first_choice_cost"`
}

func totalRecords(r *report.Range) []totalRecord {
	out := make([]totalRecord, len(r.Totals))
	for i := range r.Totals {
		t := &r.Totals[i]
		out[i] = totalRecord{
			Period: cmp.Or(t.Period, "all"), Currency: t.Currency, FirstChoice: t.FirstChoice,
			Carried: t.Carried, Delivered: t.Delivered, Attempts: t.Attempts, Fallback: t.Fallback,
			Retries: t.Retries, Resends: t.Resends, Further: t.Further, Submitted: t.Submitted,
			Accepted: t.Accepted, Failed: t.Failed, Unknown: t.Unknown, Unsent: t.Unsent,
			Pending: t.Pending, Undelivered: t.Undelivered, NoReceipt: t.NoReceipt,
			FirstChoiceSegments: t.FirstChoiceSegments, Segments: t.Segments,
			Cost: money(t.CostMicros), UnknownSegments: t.UnknownSegments,
			UnknownCost:       money(t.UnknownMicros),
			DeliveredSegments: t.DeliveredSegments, DeliveredCost: money(t.DeliveredMicros),
			FirstChoiceCost: money(t.FirstChoiceMicros),
		}
	}
	return out
}

// verdictRecord is the verdict of a route in a period.
type verdictRecord struct {
	Period           string   `json:"period"`
	Route            string   `json:"route"`
	TrafficVerdict   string   `json:"traffic_verdict"`
	Tolerance        float64  `json:"tolerance"`
	DrawsVerdict     string   `json:"draws_verdict"`
	PValue           *float64 `json:"p_value"`
	DegreesOfFreedom int64    `json:"degrees_of_freedom"`
	Carried          int64    `json:"carried"`
	Versions         string   `json:"versions"` // "2 drawn 100 carried 98;3 drawn 7 carried 7"
	Text             string   `json:"text"`
}

func verdictRecords(r *report.Range) []verdictRecord {
	out := make([]verdictRecord, len(r.Routes))
	for i := range r.Routes {
		v := &r.Routes[i]
		versions := make([]string, len(v.Versions))
		for j, s := range v.Versions {
			versions[j] = fmt.Sprintf("%d drawn %d carried %d", s.Version, s.Drawn, s.Carried)
		}
		out[i] = verdictRecord{
			v.Period, v.Route, v.TrafficVerdict, v.Tolerance, v.DrawsVerdict, v.PValue,
			int64(v.DegreesOfFreedom), v.Carried, strings.Join(versions, ";"), strings.Join(v.Text, " "),
		}
	}
	return out
}

// checkpointRecord is a line of the checkpoint. The lines are cells of their own, because a cell
// with several lines is copied with quotes around it.
type checkpointRecord struct {
	Checkpoint string `json:"checkpoint"`
}

func checkpointRecords(r *report.Range) (out []checkpointRecord) {
	for line := range strings.Lines(r.Checkpoint) {
		out = append(out, checkpointRecord{strings.TrimSuffix(line, "\n")})
	}
	return out
}
