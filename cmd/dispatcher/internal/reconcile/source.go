package reconcile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xuri/excelize/v2"
)

// xlsxMagic begins every XLSX file, which is a ZIP archive.
var xlsxMagic = []byte("PK\x03\x04")

// Open reads a file by its content: XLSX, a log where the columns say so, else CSV. Name is for
// errors.
func Open(name string, in io.Reader, o Options) (*Reader, error) {
	buffered := bufio.NewReaderSize(in, 1<<16)
	begin, _ := buffered.Peek(4) // a shorter file is an empty one
	switch {
	case bytes.HasPrefix(begin, xlsxMagic):
		return openXLSX(name, buffered, o)
	case bytes.HasPrefix(begin, []byte{0xff, 0xfe}), bytes.HasPrefix(begin, []byte{0xfe, 0xff}):
		return nil, fmt.Errorf("%s is UTF-16; save it as CSV in UTF-8", name)
	case bytes.HasPrefix(begin, []byte{0x1f, 0x8b}):
		return nil, fmt.Errorf("%s is compressed; uncompress it before", name)
	case o.Columns.Log:
		return newReader(name, newLogRows(buffered, o.Columns), o)
	}
	if bytes.HasPrefix(begin, []byte("\xef\xbb\xbf")) {
		_, _ = buffered.Discard(3) // they are in the buffer
	}
	return newReader(name, &csvRows{in: newCSV(buffered)}, o)
}

// csvRows are those of a CSV file.
type csvRows struct {
	in *csv.Reader
}

// newCSV finds out by the first line that has any which of comma, semicolon and tab divides cells.
func newCSV(in *bufio.Reader) *csv.Reader {
	r := csv.NewReader(in)
	r.FieldsPerRecord, r.ReuseRecord, r.LazyQuotes = -1, true, true
	begin, _ := in.Peek(1 << 14)
	most := 0
	for line := range bytes.Lines(begin) {
		for _, comma := range ",;\t" {
			if n := bytes.Count(line, []byte(string(comma))); n > most {
				most, r.Comma = n, comma
			}
		}
		if most > 1 {
			break
		}
	}
	return r
}

func (c *csvRows) next() (int, []string, error) {
	cells, err := c.in.Read()
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		return 0, nil, fmt.Errorf("line %d: %w", wrong.Line, wrong.Err) // without what stands there
	}
	if err != nil {
		return 0, nil, err
	}
	row, _ := c.in.FieldPos(0)
	return row, cells, nil
}

// xlsxRows are those of the first sheet of an XLSX file.
type xlsxRows struct {
	rows *excelize.Rows
	row  int
}

// xlsxMemory is how much of a sheet is held in memory; a larger one is unpacked into a temporary
// file, which goes with the reader. xlsxUnpacked bounds that.
const (
	xlsxMemory   = 16 << 20
	xlsxUnpacked = 8 << 30
)

func openXLSX(name string, in io.Reader, o Options) (*Reader, error) {
	book, err := excelize.OpenReader(in, excelize.Options{
		RawCellValue: true, UnzipXMLSizeLimit: xlsxMemory, UnzipSizeLimit: xlsxUnpacked,
	})
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read as XLSX: %w", name, err)
	}
	fail := func(err error) (*Reader, error) {
		_ = book.Close()
		return nil, err
	}
	sheets := book.GetSheetList()
	if len(sheets) == 0 {
		return fail(fmt.Errorf("%s has no sheet", name))
	}
	rows, err := book.Rows(sheets[0])
	if err != nil {
		return fail(fmt.Errorf("%s: %w", name, err))
	}
	r, err := newReader(name, &xlsxRows{rows: rows}, o)
	if err != nil {
		_ = rows.Close()
		return fail(err)
	}
	r.close = func() error { return errors.Join(rows.Close(), book.Close()) }
	return r, nil
}

func (x *xlsxRows) next() (int, []string, error) {
	if !x.rows.Next() {
		if err := x.rows.Error(); err != nil {
			return 0, nil, err
		}
		return 0, nil, io.EOF
	}
	x.row++
	cells, err := x.rows.Columns()
	if err != nil {
		return 0, nil, fmt.Errorf("row %d: %w", x.row, err)
	}
	return x.row, cells, nil
}

// logRows are the submits of a log. The first row is the names of the columns that are wanted; time
// and event stand for what is before the first bracket.
type logRows struct {
	in     *bufio.Scanner
	events []string
	names  []string
	cells  []string
	row    int
	begun  bool
}

// longestLine of a log holds a message of many parts, in hexadecimal.
const longestLine = 1 << 20

func newLogRows(in io.Reader, c *Columns) *logRows {
	l := &logRows{in: bufio.NewScanner(in), events: c.Events, names: c.wanted()}
	l.in.Buffer(make([]byte, 1<<16), longestLine)
	l.cells = make([]string, len(l.names))
	return l
}

func (l *logRows) next() (int, []string, error) {
	if !l.begun {
		l.begun = true
		return 0, l.names, nil
	}
	for l.in.Scan() {
		l.row++
		if l.parse(l.in.Text()) {
			return l.row, l.cells, nil
		}
	}
	if err := l.in.Err(); err != nil {
		return 0, nil, fmt.Errorf("line %d: %w", l.row+1, err)
	}
	return 0, nil, io.EOF
}

// parse reads "2026-11-21 10:00:00 Sent SMS [SMSC:a] [to:+44...] [msg:5:hello]" and reports whether
// it is a submit. It stops at the text, which may hold anything. Lines that begin otherwise are the
// rest of a text.
func (l *logRows) parse(line string) bool {
	at, rest, ok := cutTime(line)
	head, fields, _ := strings.Cut(rest, "[")
	if !ok {
		return false
	}
	event := ""
	for _, e := range l.events {
		if strings.Contains(head, e) {
			event = e
			break
		}
	}
	if event == "" {
		return false
	}
	clear(l.cells)
	l.put("time", at)
	l.put("event", event)
	for fields != "" {
		field, more, closed := strings.Cut(fields, "]")
		name, value, _ := strings.Cut(field, ":")
		if !closed || name == "msg" || name == "content" {
			break
		}
		l.put(name, value)
		_, fields, _ = strings.Cut(more, "[")
	}
	return true
}

func (l *logRows) put(name, value string) {
	if i := slices.Index(l.names, name); i >= 0 && l.cells[i] == "" {
		l.cells[i] = value
	}
}

// cutTime takes the time off the beginning of a line, with its fraction of a second.
func cutTime(line string) (at, rest string, ok bool) {
	const length = len("2006-01-02 15:04:05")
	if len(line) <= length || line[4] != '-' || line[10] != ' ' || line[13] != ':' {
		return "", "", false
	}
	at, rest, ok = strings.Cut(line[length:], " ")
	return line[:length] + at, rest, ok
}
