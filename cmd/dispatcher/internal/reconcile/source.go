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
)

// xlsxMagic is the beginning of every XLSX file, which is a ZIP archive.
var xlsxMagic = []byte("PK\x03\x04")

// Open opens a file: XLSX by its content, a log if the columns say so, else CSV. name is for
// errors.
func Open(name string, in io.Reader, o Options) (*Reader, error) {
	buffered := bufio.NewReaderSize(in, 1<<16)
	begin, _ := buffered.Peek(4) // a shorter file holds no rows
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

// csvRows are the rows of a CSV file.
type csvRows struct {
	in *csv.Reader
}

// newCSV takes the separator from the first line with a comma, semicolon or tab.
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
		return 0, nil, fmt.Errorf("line %d: %w", wrong.Line, wrong.Err) // without the line's text
	}
	if err != nil {
		return 0, nil, err
	}
	row, _ := c.in.FieldPos(0)
	return row, cells, nil
}

// logRows are the submits of a log. The first row has the names of the wanted columns; "time" and
// "event" are the two parts of the text before the first bracket.
type logRows struct {
	in     *bufio.Scanner
	events []string
	names  []string
	cells  []string
	row    int
	begun  bool
}

// longestLine bounds a line of a log, in bytes. A line may hold a long message in hexadecimal.
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

// parse parses "2026-11-21 10:00:00 Sent SMS [SMSC:a] [to:+44...] [msg:5:hello]" and reports
// whether it is a submit. It stops before the message's text, which may hold anything. A line
// without a time continues the text of the line before. A refusal that the SMSC itself tries again
// is no submit yet: its last try has a line of its own.
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
		if name == "retry" && value == "True" {
			return false
		}
		l.put(name, value)
		_, fields, _ = strings.Cut(more, "[")
	}
	return true
}

func (l *logRows) put(name, value string) {
	if i := slices.Index(l.names, name); i >= 0 && l.cells[i] == "" {
		l.cells[i] = unquoted(value)
	}
}

// unquoted is the text of a value that Python wrote as bytes: b'447700900123'.
func unquoted(value string) string {
	for _, quote := range []string{"'", `"`} {
		text, begins := strings.CutPrefix(value, "b"+quote)
		if text, ends := strings.CutSuffix(text, quote); begins && ends {
			return text
		}
	}
	return value
}

// cutTime cuts the time, with its fraction of a second, from the beginning of a line.
func cutTime(line string) (at, rest string, ok bool) {
	const length = len("2006-01-02 15:04:05")
	if len(line) <= length || line[4] != '-' || line[10] != ' ' || line[13] != ':' {
		return "", "", false
	}
	at, rest, ok = strings.Cut(line[length:], " ")
	return line[:length] + at, rest, ok
}
