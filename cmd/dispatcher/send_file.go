package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/numbers"
)

// candidate is one message of a file, or the reason why it cannot be published.
type candidate struct {
	line    int // where it begins in the file, from 1
	id      string
	value   []byte // the envelope; nil when there is a problem
	problem string // a sentence without number or text; empty if valid
}

// messageReader reads candidates from a file.
type messageReader struct {
	csv          bool
	region       numbers.Region
	allowUnknown bool
}

// each calls use with every message of the file, valid or not, until use fails. The error is that
// of use, or says that the file as a whole cannot be read.
func (m *messageReader) each(in io.Reader, use func(candidate) error) error {
	in = withoutMark(in)
	if m.csv {
		return m.eachRow(in, use)
	}
	return eachLine(in, func(number int, line []byte) error {
		return use(m.check(number, m.region.Rewrite(bytes.Clone(line))))
	})
}

// check applies every rule that the dispatcher will apply to an envelope.
func (m *messageReader) check(line int, value []byte) candidate {
	message, problem := envelope.Decode(value, m.allowUnknown)
	if problem == nil {
		problem = envelope.CheckSender(&message)
	}
	if problem != nil {
		return candidate{line: line, problem: problem.Detail}
	}
	return candidate{line: line, id: message.ID, value: value}
}

// eachRow reads CSV whose first row names the fields.
func (m *messageReader) eachRow(in io.Reader, use func(candidate) error) error {
	rows := csv.NewReader(in)
	header, err := rows.Read()
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("1: the file is empty; its first row names the fields")
	case err != nil:
		return fmt.Errorf("1: the header cannot be read as CSV: %w", csvCause(err))
	}
	if err := checkHeader(header); err != nil {
		return fmt.Errorf("1: %w", err)
	}
	rows.ReuseRecord = true
	for {
		row, err := rows.Read()
		var parse *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &parse):
			err = use(candidate{line: parse.StartLine, problem: "the row is not CSV: " +
				csvCause(err).Error()})
		case err != nil:
			return fmt.Errorf("read file: %w", err)
		default:
			line, _ := rows.FieldPos(0)
			err = use(m.row(line, header, row))
		}
		if err != nil {
			return err
		}
	}
}

// csvCause removes the position from a parse error, because candidates have it.
func csvCause(err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return parse.Err
	}
	return err
}

// checkHeader refuses columns that are no field, and duplicates.
func checkHeader(header []string) error {
	for i, name := range header {
		name = strings.TrimSpace(name)
		header[i] = name
		_, label := strings.CutPrefix(name, "label.")
		_, metadata := strings.CutPrefix(name, "metadata.")
		if !label && !metadata && name != "selectors" && !slices.Contains(draftFields, name) {
			return fmt.Errorf("column %d is not a field of a message: name it %s, selectors, "+
				"label.KEY or metadata.KEY", i+1, strings.Join(draftFields, ", "))
		}
		if slices.Contains(header[:i], name) {
			return fmt.Errorf("column %d has the same name as an earlier one", i+1)
		}
	}
	return nil
}

// row turns one row into a candidate.
func (m *messageReader) row(line int, header, row []string) candidate {
	d := newDraft()
	for i, name := range header {
		value := row[i]
		if name == "to" {
			value = m.region.E164(value)
		}
		if err := d.set(name, value); err != nil {
			return candidate{line: line, problem: err.Error()}
		}
	}
	value, err := d.json()
	if err != nil {
		return candidate{line: line, problem: err.Error()}
	}
	return m.check(line, value)
}

// withoutMark drops the byte order mark that some editors put before UTF-8.
func withoutMark(in io.Reader) io.Reader {
	mark := []byte("\xef\xbb\xbf")
	head := make([]byte, len(mark))
	n, err := io.ReadFull(in, head)
	if err == nil && bytes.Equal(head, mark) {
		return in
	}
	return io.MultiReader(bytes.NewReader(head[:n]), in)
}
