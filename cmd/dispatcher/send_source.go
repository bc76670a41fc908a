package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
	"dispatcher/selector"
)

// source is where messages come from. It is read twice: all of it is checked before any of it is
// sent.
type source struct {
	name   string
	file   io.ReadSeeker
	reader messageReader
	close  func()
}

// source opens the input that the flags name.
func (c *cli) source(f *sendFlags, s *config.Settings) (*source, error) {
	r, err := f.regionOr(s.DefaultRegion)
	if err != nil {
		return nil, usage(err)
	}
	src := &source{name: f.file, close: func() {}, reader: messageReader{
		region:       r,
		allowUnknown: s.AllowUnknownFields,
	}}
	src.reader.csv = f.input == "csv" || f.input == "" && strings.HasSuffix(strings.ToLower(f.file),
		".csv")
	switch f.file {
	case "":
		err = src.one(f, r)
	case "-":
		src.name = "standard input"
		err = src.spool(c.in)
	default:
		err = src.open(f.file)
	}
	return src, err
}

// regionOr is the region of numbers without a country code: that of the flag, else that of the
// process.
func (f *sendFlags) regionOr(standard string) (numbers.Region, error) {
	if f.region != "" {
		r, err := numbers.ParseRegion(f.region)
		if err != nil {
			return "", fmt.Errorf("--default-region %w", err)
		}
		return r, nil
	}
	r, err := numbers.ParseRegion(standard)
	if err != nil {
		return "", fmt.Errorf("%s_DEFAULT_REGION %w", config.Prefix, err)
	}
	return r, nil
}

// one makes the source the single message that the flags describe.
func (s *source) one(f *sendFlags, r numbers.Region) error {
	d, err := f.draft(r)
	if err != nil {
		return usage(err)
	}
	value, err := d.json()
	if err != nil {
		return usage(err)
	}
	s.file, s.reader.csv = bytes.NewReader(value), false
	return nil
}

func (s *source) open(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return usage(fmt.Errorf("--file: %w; correct the path", err))
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder; name a file", name)
	}
	if err != nil {
		_ = file.Close() // nothing was written
		return usage(fmt.Errorf("--file: %w", err))
	}
	s.file, s.close = file, func() { _ = file.Close() } // nothing was written
	return nil
}

// spool copies standard input, which can be read only once, to a temporary file that only its owner
// may read.
func (s *source) spool(in io.Reader) error {
	file, err := os.CreateTemp("", "dispatcher-send-*")
	if err != nil {
		return fmt.Errorf("keep standard input: %w", err)
	}
	s.file, s.close = file, func() {
		_ = file.Close() // its content was read
		_ = os.Remove(file.Name())
	}
	if _, err := io.Copy(file, in); err != nil {
		s.close()
		return fmt.Errorf("keep standard input in %s: %w", file.Name(), err)
	}
	return nil
}

// each reads the source from its start.
func (s *source) each(use func(candidate) error) error {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("%s can only be read once: pass it through standard input with --file "+
			"-: %w", s.name, err)
	}
	return s.reader.each(s.file, use)
}

// checked is the result of the first reading.
type checked struct {
	good, bad int64
	lastID    string
}

// mostReported bounds how many bad lines are printed.
const mostReported = 100

// checkAll applies the rules of an envelope to every message and reports the bad ones. It fails
// when there are any, unless they are to be skipped.
func (c *cli) checkAll(f *sendFlags, s *source) (checked, error) {
	var found checked
	err := s.each(func(m candidate) error {
		if m.problem == "" {
			found.good++
			found.lastID = m.id
			return nil
		}
		found.bad++
		switch {
		case f.file == "":
			return usage(fmt.Errorf("the message is not valid: %s", m.problem))
		case found.bad <= mostReported:
			fmt.Fprintf(c.err, "%s:%d: %s\n", s.name, m.line, m.problem)
		}
		return nil
	})
	if err != nil {
		if f.file != "" {
			err = fmt.Errorf("%s:%w", s.name, err)
		}
		return found, err
	}
	if found.bad > mostReported {
		fmt.Fprintf(c.err, "%s: and %d more bad lines\n", s.name, found.bad-mostReported)
	}
	switch {
	case found.bad > 0 && !f.skipBad:
		return found, failed(fmt.Errorf("%d of %d lines cannot be sent, so nothing was: correct "+
			"them, or send the others with --skip-bad", found.bad, found.bad+found.good))
	case found.good == 0:
		return found, failed(fmt.Errorf("%s holds no message that could be sent", s.name))
	}
	return found, nil
}

// draft is a message as a person writes it, in flags or in a row of a CSV file: names of envelope
// fields and their values as text. It becomes JSON, and envelope.Decode says whether that is a
// valid envelope.
type draft struct {
	fields    map[string]string
	labels    map[string]any
	selectors []draftSelector
	metadata  map[string]string
}

type draftSelector struct {
	Key      string `json:"key"`
	Operator string `json:"operator"`
	Value    any    `json:"value"`
}

// draftFields are the fields of an envelope that are plain strings.
var draftFields = []string{
	"id", "to", "from", "text", "tenant", "send_at", "expires_at",
	"max_price",
}

func newDraft() *draft {
	return &draft{
		fields: map[string]string{}, labels: map[string]any{},
		metadata: map[string]string{},
	}
}

// set sets one named value. An empty value is an absent field. Errors never contain the value.
func (d *draft) set(name, value string) error {
	if !utf8.ValidString(value) {
		return fmt.Errorf("%s is not UTF-8 text", name)
	}
	if value == "" {
		return nil
	}
	if key, ok := strings.CutPrefix(name, "label."); ok {
		d.labels[key] = literal(value)
		return nil
	}
	if key, ok := strings.CutPrefix(name, "metadata."); ok {
		d.metadata[key] = value
		return nil
	}
	if name == "selectors" {
		return d.addSelectors(value)
	}
	d.fields[name] = value
	return nil
}

// addSelectors reads one or several "key operator value", separated by semicolons.
func (d *draft) addSelectors(text string) error {
	for one := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(one) == "" {
			continue
		}
		key, rest, _ := strings.Cut(strings.TrimSpace(one), " ")
		operator, value, ok := strings.Cut(strings.TrimSpace(rest), " ")
		if !ok || !selector.Operator(operator).Valid() {
			return errors.New(`a selector is not "key operator value" with one of the operators ` +
				operators)
		}
		d.selectors = append(d.selectors, draftSelector{
			key, operator,
			literal(strings.TrimSpace(value)),
		})
	}
	return nil
}

const operators = "equal, notEqual, greaterThan, greaterThanEqual, lessThan, lessThanEqual"

// literal distinguishes numbers from texts: a JSON number is a number, and a value in double quotes
// is a text even if it looks like a number.
func literal(value string) any {
	if inner, ok := strings.CutPrefix(value, `"`); ok && strings.HasSuffix(inner, `"`) {
		return strings.TrimSuffix(inner, `"`)
	}
	if c := value[0]; (c == '-' || c >= '0' && c <= '9') && json.Valid([]byte(value)) {
		return json.Number(value)
	}
	return value
}

// json is the draft as an envelope.
func (d *draft) json() ([]byte, error) {
	members := make(map[string]any, len(d.fields)+3)
	for name, value := range d.fields {
		members[name] = value
	}
	if len(d.labels) > 0 {
		members["labels"] = d.labels
	}
	if len(d.selectors) > 0 {
		members["selectors"] = d.selectors
	}
	if len(d.metadata) > 0 {
		members["metadata"] = d.metadata
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(members); err != nil {
		return nil, fmt.Errorf("write envelope: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}
