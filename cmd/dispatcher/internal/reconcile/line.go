// Package reconcile reads what a provider took and billed, from invoices (CSV or XLSX) and logs of
// SMSCs. It pairs lines without an id of ours with attempts, by number, time and segments.
//
// It uses no database: ledger.Reconciliations stores the lines of a comparison and finds the
// differences. A number leaves this package only in Line.Number, for its keyed hash. Errors name
// file, line and column, and never quote a number.
package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"dispatcher/provider"
)

// Line is one line of a file.
type Line struct {
	Row       int    // in the file, from 1
	Reference string // empty for none
	Number    string // in E.164 form; empty for none, or a masked one
	At        time.Time
	Segments  int // 0 if the file does not say
	// Nanos is the price in billionths of Currency, if the line is Priced, with the sign of the file.
	Nanos    int64
	Priced   bool
	Currency string
	// Taken is whether the provider took it; if not, it bills nothing.
	Taken bool
}

// Options say how values of a file are written.
type Options struct {
	Columns *Columns
	// Currency is the currency of prices without one; empty for that of the preset.
	Currency string
	// Zone is the time zone of times without one.
	Zone *time.Location
	// DayFirst reads 03/04/2026 as a day in April.
	DayFirst bool
	// DecimalComma reads 1.234,50 as 1234.50.
	DecimalComma bool
}

// source iterates over the rows of a file, with the header. The cells are valid until the next
// call. After the last row it returns io.EOF.
type source interface {
	next() (row int, cells []string, err error)
}

// Reader reads the lines of one file.
type Reader struct {
	name   string
	rows   source
	opt    Options
	at     [fieldCount]int
	header []string
	close  func() error
	// Skipped counts rows that are not messages of ours: empty ones, totals, messages of subscribers.
	Skipped int
}

// headerWithin is how many rows are searched for the header: invoices begin with addresses.
const headerWithin = 50

// newReader finds the header.
func newReader(name string, rows source, o Options) (*Reader, error) {
	r := &Reader{name: name, rows: rows, opt: o}
	var first []string
	for range headerWithin {
		_, cells, err := rows.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if r.at = o.Columns.places(cells); r.at[Reference] >= 0 || r.at[Number] >= 0 &&
			r.at[Time] >= 0 {
			r.header = slices.Clone(cells)
			return r, nil
		}
		if first == nil && len(cells) > 1 {
			first = slices.Clone(cells)
		}
	}
	if first == nil {
		return nil, fmt.Errorf("%s has no row of column names", name)
	}
	return nil, fmt.Errorf("%s has no column for %s in its first %d rows, and not both number and "+
		"time; its columns are %s: name them with --columns", name, Reference, headerWithin,
		strings.Join(printable(first), ", "))
}

// printable returns the names that an error may quote: those without digits, because a row that is
// no header may hold phone numbers.
func printable(names []string) (out []string) {
	for _, name := range names {
		if name = strings.TrimSpace(name); name == "" || len(name) > 40 ||
			strings.ContainsAny(name, "0123456789+") {
			name = "..."
		}
		out = append(out, name)
	}
	return out
}

// Has reports whether the file has a column for a field.
func (r *Reader) Has(f Field) bool { return r.at[f] >= 0 }

// Close closes the file.
func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// Next reads the next line; after the last one it returns io.EOF.
func (r *Reader) Next(l *Line) error {
	for {
		row, cells, err := r.rows.next()
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		message, err := r.read(l, row, cells)
		if err != nil {
			return err
		}
		if message {
			return nil
		}
		r.Skipped++
	}
}

// cell is the value of a field in a row.
func (r *Reader) cell(cells []string, f Field) string {
	if at := r.at[f]; at >= 0 && at < len(cells) {
		return strings.TrimSpace(cells[at])
	}
	return ""
}

// read parses one row, and reports whether it is a message.
func (r *Reader) read(l *Line, row int, cells []string) (bool, error) {
	*l = Line{Row: row, Reference: r.cell(cells, Reference)}
	if missing := r.opt.Columns.Digits - len(l.Reference); missing > 0 && l.Reference != "" {
		l.Reference = strings.Repeat("0", missing) + l.Reference
	}
	number := r.cell(cells, Number)
	if l.Reference == "" && !strings.ContainsAny(number, "0123456789") ||
		strings.HasPrefix(strings.ToLower(r.cell(cells, Direction)), "in") {
		return false, nil
	}
	fail := func(f Field, err error) (bool, error) {
		return false, fmt.Errorf("%s, line %d, column %q: %w", r.name, row, r.header[r.at[f]], err)
	}
	var err error
	if l.Number, err = parseNumber(number); err != nil {
		return fail(Number, err)
	}
	switch {
	case len(l.Reference) > provider.MaxReference || strings.ContainsAny(l.Reference, " \t\r\n"):
		return fail(Reference, errors.New("this is not an id of a provider"))
	case l.Number != "" && strings.TrimPrefix(l.Reference, "+") == l.Number[1:]:
		return fail(Reference, errors.New("this is the number; name the column of ids"))
	}
	if s := r.cell(cells, Time); s != "" {
		if l.At, err = parseTime(s, r.opt.Zone, r.opt.DayFirst); err != nil {
			return fail(Time, err)
		}
	}
	if l.Segments, err = parseSegments(r.cell(cells, Segments)); err != nil {
		return fail(Segments, err)
	}
	if l.Segments == 0 && r.opt.Columns.PartPerLine {
		l.Segments = 1
	}
	if f, err := r.price(l, cells); err != nil {
		return fail(f, err)
	}
	l.Taken = l.Nanos != 0 || !refuses(r.cell(cells, Status), r.opt.Columns.Refused)
	return true, nil
}

// price parses the price of a line, or of one segment, and the currency. With an error it returns
// the field that is wrong.
func (r *Reader) price(l *Line, cells []string) (Field, error) {
	f, times := Price, int64(1)
	s := r.cell(cells, Price)
	if s == "" {
		f, times, s = UnitPrice, int64(max(l.Segments, 1)), r.cell(cells, UnitPrice)
	}
	if s == "" {
		return f, nil
	}
	nanos, currency, err := parsePrice(s, r.opt.DecimalComma)
	if err != nil {
		return f, err
	}
	l.Nanos, l.Priced = nanos*times, true
	l.Currency = strings.ToUpper(cmp.Or(r.cell(cells, Currency), currency, r.opt.Currency,
		r.opt.Columns.Currency))
	if !isCurrency(l.Currency) {
		if r.Has(Currency) {
			f = Currency
		}
		return f, errors.New("the currency is not a code of three letters; say which it is with " +
			"--currency EUR")
	}
	return f, nil
}
