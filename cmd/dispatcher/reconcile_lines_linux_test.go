package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/xuri/excelize/v2"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
	"dispatcher/selector"
)

// lines is raised for the measurements in docs/benchmark.md.
var lines = flag.Int("lines", tier.Size(2_000, 10_000), "how many lines TestManyLines compares")

// A million lines take no longer than this, with no more memory of the process. The time is that by
// the clock or the CPU time with PostgreSQL's, whichever is less: other work on the machine
// multiplies the first, and both cores add to the second.
const (
	million     = 1_000_000
	millionTime = time.Minute
	millionMB   = 500
)

// TestManyLines compares them by reference, by number alone, and as XLSX, and logs what it took.
// From a million lines on it fails above the bounds.
func TestManyLines(t *testing.T) {
	t.Parallel()
	lines := *lines
	b := openBill(t, billed{id: "first", digits: "001", references: "first", segments: 1})
	b.multiply(lines)
	file := filepath.Join(t.TempDir(), "bill.csv")
	b.write(file, lines)
	sheet := strings.TrimSuffix(file, "csv") + "xlsx"
	b.writeXLSX(sheet, file)
	for _, c := range []struct {
		name, file string
		args       []string
	}{
		{"by reference", file, nil},
		{"by number", file, []string{"--columns", "reference="}},
		{"XLSX", sheet, nil},
	} {
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(t.Context(), binary(t), append([]string{
			"reconcile", "c", "--file", c.file, "--format", "json", "--dry-run",
		}, c.args...)...)
		environment.Lock()
		cmd.Env = append(append(os.Environ(), runAsProgram+"=1"), b.env...)
		environment.Unlock()
		cmd.Stdout, cmd.Stderr = &out, &errs
		begun, all := time.Now(), ledgertest.CPUTime(t)
		err := cmd.Run()
		took := time.Since(begun)
		all = ledgertest.CPUTime(t) - all
		var found reconciled
		if json.Unmarshal(out.Bytes(), &found) != nil || errs.Len() > 0 {
			t.Fatalf("%s: %v: %s", c.name, err, errs.String())
		}
		used, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		peak, cpu := used.Maxrss/1024, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
		t.Logf("%s: %d lines, %d matched in %.1f s; CPU %.1f s, of which the process %.1f s; %d MB at most",
			c.name, found.Lines, found.Matched, took.Seconds(), all.Seconds(), cpu.Seconds(), peak)
		if lines >= million && (min(took, all) > millionTime || peak > millionMB) {
			t.Errorf("%s: %d lines took %.1f s, %.1f s of CPU time and %d MB, more than %s and %d MB",
				c.name, lines, took.Seconds(), all.Seconds(), peak, millionTime, millionMB)
		}
		// One line in a thousand is missing on either side.
		if n := int64(lines / 1000); found.Lines != int64(lines) || found.OursOnly != n+1 ||
			found.TheirsOnly != n || found.Matched != int64(lines)-n {
			t.Errorf("%s: %d lines, %d matched, %d only ours, %d only theirs", c.name, found.Lines,
				found.Matched, found.OursOnly, found.TheirsOnly)
		}
	}
}

// number is the number of message i.
func (b *bill) number(i int) string { return fmt.Sprintf("+4477%08d", i) }

// multiply stores n more accepted messages, a hundred a second.
func (b *bill) multiply(n int) {
	b.t.Helper()
	key, err := selector.ParseKey(auditKey)
	if err != nil {
		b.t.Fatal(err)
	}
	hashes := decide.NewKeyedHashes([]selector.Key{key})
	var first int64
	if err := b.sql.QueryRow(b.t.Context(), `select seq from dispatcher.messages`).Scan(&first); err != nil {
		b.t.Fatal(err)
	}
	store := func(table string, columns []string, row func(i int) []any) {
		b.t.Helper()
		if _, err := b.sql.CopyFrom(b.t.Context(), pgx.Identifier{"dispatcher", table}, columns,
			pgx.CopyFromSlice(n, func(i int) ([]any, error) { return row(i), nil })); err != nil {
			b.t.Fatal(err)
		}
	}
	at := func(i int) time.Time { return b.begin.Add(time.Duration(i) * 10 * time.Millisecond) }
	store("messages", []string{
		"seq", "received_at", "number_hmac", "id", "lane", "attempts", "state", "routing_version",
	}, func(i int) []any {
		return []any{
			first + 1 + int64(i), at(i), hashes.OfNumber(nil, b.number(i))[0], fmt.Sprintf("m%d", i),
			"bulk", 1, "sending", 1,
		}
	})
	store("attempts", []string{
		"message_seq", "instance", "claimed_at", "price_micros", "attempt", "segments", "channel",
		"reason", "currency", "settled_at", "answers", "outcome", "provider_reference",
	}, func(i int) []any {
		return []any{
			first + 1 + int64(i), 1, at(i), 28_000, 1, 1, "c", "first_choice", "GBP", at(i), 1,
			"accepted", fmt.Sprintf("reference-of-%032d", i),
		}
	})
	b.exec(`vacuum analyze`)
}

// write writes a line for each of the n messages except one in a thousand, and lines of as many
// unknown messages.
func (b *bill) write(path string, n int) {
	b.t.Helper()
	file, err := os.Create(path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // Flush reports errors.
	out := bufio.NewWriter(file)
	fmt.Fprintln(out, "reference,number,time,segments,price,currency,status")
	for i := range n {
		who := i
		if i%1000 == 500 {
			who += n
		}
		fmt.Fprintf(out, "reference-of-%032d,%s,%s,1,0.028,GBP,delivered\n", who, b.number(who),
			b.begin.Add(time.Duration(i)*10*time.Millisecond).Format("2006-01-02 15:04:05"))
	}
	if err := out.Flush(); err != nil {
		b.t.Fatal(err)
	}
}

// writeXLSX writes a CSV file as XLSX.
func (b *bill) writeXLSX(path, from string) {
	b.t.Helper()
	in, err := os.Open(from)
	if err != nil {
		b.t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // It was only read.
	book := excelize.NewFile()
	defer book.Close() //nolint:errcheck // It was only written.
	rows, err := book.NewStreamWriter("Sheet1")
	if err != nil {
		b.t.Fatal(err)
	}
	scan := bufio.NewScanner(in)
	for row := 1; scan.Scan(); row++ {
		var cells []any
		for cell := range strings.SplitSeq(scan.Text(), ",") {
			cells = append(cells, cell)
		}
		if err := rows.SetRow(fmt.Sprintf("A%d", row), cells); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := rows.Flush(); err != nil {
		b.t.Fatal(err)
	}
	if err := book.SaveAs(path); err != nil {
		b.t.Fatal(err)
	}
}
