package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"
	"github.com/xuri/excelize/v2"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// sampleFigures returns figures of some days by hour: two channels in two currencies. On every
// third day a limit of b was used up.
func sampleFigures(t *testing.T, days int) *report.RangeFigures {
	t.Helper()
	applied, err := config.ParseApplied("test", []byte(testRouting))
	if err != nil {
		t.Fatal(err)
	}
	doc := applied.Routing
	f := &report.RangeFigures{
		Unit: report.Day, By: []report.Dimension{report.ByRoute, report.ByChannel}, Complete: true,
		Versions: map[int64]*config.Routing{1: doc}, Current: doc,
	}
	for day := range days {
		noon := time.Date(2026, 10, 1+day, 12, 0, 0, 0, time.UTC)
		f.Days = append(f.Days, noon)
		for hour := range 24 {
			part := ledger.PartFigures{Part: ledger.Part{
				Period: f.Unit.Period(noon), Hour: int16(hour),
			}}
			most := int64(40 + 30*(12-max(hour-12, 12-hour)) + 7*(day*hour%5))
			for i, channel := range []string{"a", "b", "c"} {
				n := most * []int64{25, 15, 60}[i] / 10
				moved := int64(0)
				if channel == "b" && day%3 == 2 && hour > 12 {
					moved = n * 2 / 3
				}
				part.Choices = append(part.Choices, ledger.ChoiceRow{
					Version: 1, Route: "default", Channel: channel, FirstChoice: n, Failed: n / 100,
				})
				part.Carried = append(part.Carried, ledger.CarriedRow{
					Version: 1, Route: "default", FirstChoice: channel, Channel: channel,
					Messages: n - moved - n/100,
				})
				if moved > 0 {
					part.Carried = append(part.Carried, ledger.CarriedRow{
						Version: 1, Route: "default", FirstChoice: channel, Channel: "a",
						Cause: "no_slot", Messages: moved,
					})
				}
				part.Rows = append(part.Rows, ledger.DailyRow{
					Route: "default", Channel: channel, Attempts: n, Submitted: n,
					Accepted: n - n/100, Delivered: n - n/50, Rejected: n / 100,
					Segments: n, CostMicros: n * 28_001, Currency: []string{"GBP", "EUR", "GBP"}[i],
				})
			}
			f.Ledger.Parts = append(f.Ledger.Parts, part)
		}
	}
	return f
}

func TestAWorkbookHasNumbers(t *testing.T) {
	t.Parallel()
	r := report.NewRange(sampleFigures(t, 9))
	var out bytes.Buffer
	if err := writeXLSX(&out, &r); err != nil {
		t.Fatal(err)
	}
	book, err := excelize.OpenReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := book.GetRows("rows", excelize.Options{RawCellValue: true})
	if err != nil || len(rows) != 1+len(r.Rows) {
		t.Fatalf("%v, %d rows", err, len(rows))
	}
	records := rangeRecords(&r)
	for i, column := range allKeys[rangeRecord]() {
		if rows[0][i] != column.key {
			t.Errorf("column %d is %s, want %s", i, rows[0][i], column.key)
		}
		cell, err := excelize.CoordinatesToCellName(i+1, 2)
		if err != nil {
			t.Fatal(err)
		}
		kind, err := book.GetCellType("rows", cell)
		if err != nil {
			t.Fatal(err)
		}
		switch column.key {
		case "carried":
			if rows[1][i] != fmt.Sprint(records[0].Carried) || kind == excelize.CellTypeInlineString {
				t.Errorf("%s: got %s", column.key, rows[1][i])
			}
		case "cost":
			if rows[1][i] != strings.TrimRight(records[0].Cost.String(), "0") ||
				kind == excelize.CellTypeInlineString {
				t.Errorf("%s: %s, want %s", column.key, rows[1][i], records[0].Cost)
			}
		}
	}
	sums := sheetRows(t, book, "totals")
	for _, row := range sums {
		n := func(key string) (n int64) {
			if _, err := fmt.Sscan(row[key], &n); err != nil {
				t.Errorf("%s: %q, %v", key, row[key], err)
			}
			return n
		}
		if parts := n("accepted") + n("failed") + n("unknown") + n("unsent") + n("pending"); parts == 0 ||
			n("attempts") != parts {
			t.Errorf("%d attempts are not the sum of their parts: %v", n("attempts"), row)
		}
	}
	for _, total := range allKeys[totalRecord]()[2:] {
		if !slices.ContainsFunc(allKeys[rangeRecord](), func(of column[rangeRecord]) bool {
			return of.key == total.key
		}) {
			t.Errorf("no column of the rows is %s", total.key)
		}
	}
	verdicts := sheetRows(t, book, "verdicts")
	if v := verdicts[0]; len(sums) < 2 || len(verdicts) < 2 || v["degrees_of_freedom"] != "2" ||
		!strings.HasPrefix(v["tolerance"], "0.020") || !strings.HasPrefix(v["versions"], "1 drawn ") {
		t.Errorf("got verdict %v", v)
	}
}

// sheetRows are the rows of a sheet, by the names in its header.
func sheetRows(t *testing.T, book *excelize.File, name string) (out []map[string]string) {
	t.Helper()
	rows, err := book.GetRows(name, excelize.Options{RawCellValue: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		cells := map[string]string{}
		for i, cell := range row {
			cells[rows[0][i]] = cell
		}
		out = append(out, cells)
	}
	return out
}

func TestParquetHasWhatCSVHas(t *testing.T) {
	t.Parallel()
	r := report.NewRange(sampleFigures(t, 9))
	var out bytes.Buffer
	want := rangeRecords(&r)
	if err := parquet.Write(&out, want); err != nil {
		t.Fatal(err)
	}
	got, err := parquet.Read[rangeRecord](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("got error %v (-want +got):\n%s", err, diff)
	}
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, column := range file.Schema().Columns() {
		names = append(names, column[0])
	}
	for i, column := range allKeys[rangeRecord]() {
		if names[i] != column.key {
			t.Errorf("column %d is %s, want %s", i, names[i], column.key)
		}
	}
	if cost := fmt.Sprint(file.Schema()); !strings.Contains(cost, "cost (DECIMAL(18,6))") {
		t.Error(cost)
	}
}

// TestTheFileOfTheConsoleIsThatOfTheCommand: each row with the columns of --format csv, and nothing
// that a spreadsheet takes for a formula.
func TestTheFileOfTheConsoleIsThatOfTheCommand(t *testing.T) {
	t.Parallel()
	r := report.NewRange(sampleFigures(t, 2))
	r.Rows[0].Sender = "=cmd()\x1b"
	var out bytes.Buffer
	if err := reportCSV(&out, &r); err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(all) != len(r.Rows)+1 {
		t.Fatalf("%d rows, error %v", len(all), err)
	}
	for i, column := range allKeys[rangeRecord]() {
		if all[0][i] != column.key {
			t.Errorf("column %d is %s, want %s", i, all[0][i], column.key)
		}
		if column.key == "sender" && all[1][i] != `'=cmd()\u001b` {
			t.Errorf("the sender is %q", all[1][i])
		}
	}
}

// TestFilesHaveTheCheckpoint: as it was signed, to the byte. That of CSV is in a file beside it.
func TestFilesHaveTheCheckpoint(t *testing.T) {
	t.Parallel()
	const signed = "sms.example.com\n22\nq83v\n\n— sms.example.com Zm9v\n"
	figures := sampleFigures(t, 1)
	for _, checkpoint := range []string{signed, ""} {
		figures.Checkpoint = checkpoint
		r := report.NewRange(figures)
		written := func(as format) []byte {
			var out bytes.Buffer
			if err := writeRange(&out, as, &r, figures, &rangeFlags{}); err != nil {
				t.Fatal(err)
			}
			return out.Bytes()
		}
		book, err := excelize.OpenReader(bytes.NewReader(written(formatXLSX)))
		if err != nil {
			t.Fatal(err)
		}
		lines := ""
		if slices.Contains(book.GetSheetList(), "checkpoint") {
			rows, err := book.GetRows("checkpoint")
			if err != nil || len(rows) == 0 || !slices.Equal(rows[0], []string{"checkpoint"}) {
				t.Fatalf("%v, %q", err, rows)
			}
			for _, row := range rows[1:] {
				lines += strings.Join(row, "") + "\n"
			}
		}
		if lines != checkpoint {
			t.Errorf("the workbook has %q, want %q", lines, checkpoint)
		}
		raw := written(formatParquet)
		file, err := parquet.OpenFile(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := file.Lookup("checkpoint"); got != checkpoint || ok != (checkpoint != "") {
			t.Errorf("Parquet has %q, %v, want %q", got, ok, checkpoint)
		}
		if got := string(written(formatHTML)); !strings.Contains(got, "<pre>") != (checkpoint == "") ||
			!strings.Contains(got, checkpoint) {
			t.Errorf("HTML lacks %q", checkpoint)
		}
		if got := string(written(formatCSV)); strings.Contains(got, "sms.example.com") {
			t.Errorf("CSV has other lines than rows: %s", got)
		}
		name := filepath.Join(t.TempDir(), "day.csv")
		if err := (&cli{}).writeReport(&r, figures, &rangeFlags{output: name}); err != nil {
			t.Fatal(err)
		}
		beside, err := os.ReadFile(name + ".checkpoint")
		if string(beside) != checkpoint || errors.Is(err, fs.ErrNotExist) != (checkpoint == "") {
			t.Errorf("beside CSV is %q, %v, want %q", beside, err, checkpoint)
		}
	}
}

// TestThePageNeedsNothingElse: it has no script and no address of another file. It contains the
// plots, and names in the figures are escaped.
func TestThePageNeedsNothingElse(t *testing.T) {
	t.Parallel()
	for _, days := range []int{1, 14, 31, 90} {
		figures := sampleFigures(t, days)
		for i := range figures.Ledger.Parts[0].Rows {
			figures.Ledger.Parts[0].Rows[i].Currency = "<b>"
		}
		r := report.NewRange(figures)
		var out bytes.Buffer
		if err := writeHTML(&out, &r, figures, &rangeFlags{in: inMessages}); err != nil {
			t.Fatal(err)
		}
		if folder := os.Getenv("REPORT_PAGES"); folder != "" {
			name := filepath.Join(folder, fmt.Sprintf("report-%d.html", days))
			if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		page := out.String()
		for _, never := range []string{"<script", "<link", "src=", "@import", "<b>", "url("} {
			if strings.Contains(page, never) {
				t.Errorf("%d days: the page has %s", days, never)
			}
		}
		for _, address := range regexp.MustCompile(`https?://[^"' <]+`).FindAllString(page, -1) {
			if !strings.HasPrefix(address, "http://www.w3.org/") { // XML namespaces are not fetched
				t.Errorf("%d days: the page has %s", days, address)
			}
		}
		for _, want := range []string{
			"share carried against share agreed", "channel b: from agreed to carried",
			"Messages carried, by hour", "Cost in EUR", "Cost in GBP", "prefers-color-scheme",
			"@media print",
		} {
			if strings.Contains(want, "channel b") && days < 3 {
				continue
			}
			if !strings.Contains(page, want) {
				t.Errorf("%d days: %q is missing", days, want)
			}
		}
	}
}

// TestReportsAreWrittenToFiles: the suffix of the name selects the format.
func TestReportsAreWrittenToFiles(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	backDated(t, db)
	folder := t.TempDir()
	for format, begins := range map[string]string{
		"csv": "unit,", "json": "{", "xlsx": "PK", "parquet": "PAR1", "html": "<!doctype html>",
	} {
		name := filepath.Join(folder, "week."+format)
		got := dispatcher(t, "", env, "report", "weekly", "--from", ago(t, 2), "--output", name)
		text, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(text), begins) || got.out != "" || got.err != "" {
			t.Errorf("%s: %v, %+v, %.40s", format, err, got, text)
		}
		piped := dispatcher(t, "", env, "report", "daily", "--day", ago(t, 1), "--format", format)
		if format != "json" && format != "csv" && !strings.HasPrefix(piped.out, begins) {
			t.Errorf("%s: %.60s", format, piped.out)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 5 {
		t.Errorf("got %v, error %v", left, err)
	}
	for want, args := range map[string][]string{
		"name the format with --format, or by the end": {"--output", filepath.Join(folder, "x.pdf")},
		"must be table, json, csv, xlsx, parquet or":   {"--format", "pdf"},
		"no such file or directory":                    {"--output", filepath.Join(folder, "no", "x.csv")},
	} {
		got := dispatcher(t, "", env, append([]string{"report", "weekly"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
}

// TestTheAgreedShareByTimeIsInEachFormat but the table of a terminal, which has no room for it.
// There it is in the sentences, where it differs.
func TestTheAgreedShareByTimeIsInEachFormat(t *testing.T) {
	t.Parallel()
	figures := sampleFigures(t, 1)
	begin := figures.Days[0].Add(-12 * time.Hour)
	write := func(as format) string {
		t.Helper()
		r := report.NewRange(figures)
		var out bytes.Buffer
		shown := showing(&out)
		if err := writeRange(shown, as, &r, figures, &rangeFlags{in: inMessages}); err != nil {
			t.Fatal(err)
		}
		shown.finish()
		return out.String()
	}
	other, err := config.ParseApplied("test",
		[]byte(strings.Replace(testRouting, "{a: 25, b: 15, c: 60}", "{a: 45, b: 15, c: 40}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	figures.Versions[2] = other.Routing
	figures.InForce = []ledger.InForce{
		{Version: 1, Base: 1, From: begin, To: begin.Add(18 * time.Hour)},
		{Version: 2, Base: 2, From: begin.Add(18 * time.Hour), To: begin.Add(24 * time.Hour)},
	}
	if strings.Contains(write(formatTable), "by time") {
		t.Error("the table of a terminal has a column of agreed shares by time")
	}
	for as, want := range map[format]string{
		formatHTML: ">30.00 %<", formatJSON: `"agreed_share_by_time": 0.3`,
	} {
		if got := write(as); !strings.Contains(got, want) {
			t.Errorf("%s: %q is missing in\n%s", as, want, got)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(write(formatCSV))).ReadAll()
	if at := slices.Index(rows[0], "agreed_share_by_time"); err != nil || at < 0 || rows[1][at] != "0.3" {
		t.Errorf("got %v, error %v", rows, err)
	}
	packed := write(formatParquet)
	records, err := parquet.Read[rangeRecord](strings.NewReader(packed), int64(len(packed)))
	if err != nil || records[0].AgreedShareByTime == nil || *records[0].AgreedShareByTime != 0.3 {
		t.Errorf("got %+v, error %v", records, err)
	}
}
