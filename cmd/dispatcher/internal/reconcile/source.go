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
	case o.Columns.Log != nil:
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
	in    *bufio.Scanner
	form  *logForm
	names []string
	cells []string
	row   int
	begun bool
}

// longestLine bounds a line of a log, in bytes. A line may hold a long message in hexadecimal.
const longestLine = 1 << 20

func newLogRows(in io.Reader, c *Columns) *logRows {
	l := &logRows{in: bufio.NewScanner(in), form: c.Log, names: c.wanted()}
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
		submit, err := l.parse(l.in.Text())
		if err != nil {
			return 0, nil, fmt.Errorf("line %d: %w", l.row, err)
		}
		if submit {
			return l.row, l.cells, nil
		}
	}
	if err := l.in.Err(); err != nil {
		return 0, nil, fmt.Errorf("line %d: %w", l.row+1, err)
	}
	return 0, nil, io.EOF
}

// parse parses a line and reports whether it is a submit. A line without a time continues the text
// of the line before.
func (l *logRows) parse(line string) (bool, error) {
	at, rest, ok := cutTime(line)
	if !ok {
		return false, nil
	}
	clear(l.cells)
	if l.form.Fields != nil {
		return l.parseFields(rest)
	}
	return l.parseBrackets(at, rest), nil
}

// parseFields parses "DEBUG [CdrGenerator] (thread) 2026-11-21 10:00:00.000,ACME,...", after the
// time of the log.
func (l *logRows) parseFields(rest string) (bool, error) {
	at := slices.IndexFunc(l.form.Events, func(e string) bool { return strings.Contains(rest, e) })
	if at < 0 {
		return false, nil
	}
	_, rest, _ = strings.Cut(rest, l.form.Events[at])
	if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "(") {
		_, rest, _ = strings.Cut(rest, ") ")
	}
	fields := l.form.Fields
	values := strings.SplitN(rest, ",", len(fields)+1)
	if len(values) <= len(fields) {
		return false, fmt.Errorf("it has %d fields, and the preset knows logs of more than %d; an "+
			"older version of the SMSC may write fewer: make it CSV with column names, and give "+
			"--preset plain", len(values), len(fields))
	}
	for i, name := range fields {
		if slices.Contains(l.form.Skip, name+":"+values[i]) {
			return false, nil
		}
		l.put(name, values[i])
	}
	return true, nil
}

// parseBrackets parses "Sent SMS [SMSC:a] [to:+44...] [msg:5:hello]", after the time of the log. It
// stops before the message's text, which may hold anything.
func (l *logRows) parseBrackets(at, rest string) bool {
	head, fields, _ := strings.Cut(rest, "[")
	event := slices.IndexFunc(l.form.Events, func(e string) bool { return strings.Contains(head, e) })
	if event < 0 {
		return false
	}
	l.put("time", at)
	l.put("event", l.form.Events[event])
	for fields != "" {
		field, more, closed := strings.Cut(fields, "]")
		name, value, _ := strings.Cut(field, ":")
		if !closed || name == "msg" || name == "content" {
			break
		}
		if slices.Contains(l.form.Skip, field) {
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
